"""The official Python SDK, major version 1: `client.py legacy CALLS SERVER ARGUMENT...`."""

import json
import sys

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(calls: str, command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        results = {name: await session.call_tool(tool, given) for name, [tool, given] in json.loads(calls).items()}
        await session.send_ping()
    plain = {name: result.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, result in results.items()}
    print(json.dumps({"tools": [tool.name for tool in tools.tools], "results": plain}))


anyio.run(main, *sys.argv[2:])
