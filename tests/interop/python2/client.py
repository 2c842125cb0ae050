"""The official Python SDK, major version 2: `client.py legacy|auto|REVISION CALLS SERVER ARGUMENT...`."""

import json
import sys

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main(mode: str, calls: str, command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    async with Client(stdio_client(server), mode=mode) as client:
        tools = await client.list_tools()
        results = {name: await client.call_tool(tool, given) for name, [tool, given] in json.loads(calls).items()}
    plain = {name: result.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, result in results.items()}
    print(json.dumps({"tools": [tool.name for tool in tools.tools], "results": plain}))


anyio.run(main, *sys.argv[1:])
