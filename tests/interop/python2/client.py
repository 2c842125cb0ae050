"""The official Python SDK, major version 2: `client.py legacy|auto|REVISION URL SERVER ARGUMENT...`."""

import json
import sys

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main(mode: str, url: str, command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    async with Client(stdio_client(server), mode=mode) as client:
        tools = await client.list_tools()
        allowed = await client.call_tool("http_request", {"method": "GET", "url": url})
        denied = await client.call_tool("http_request", {"method": "DELETE", "url": url})
    names = [tool.name for tool in tools.tools]
    print(json.dumps({"tools": names, "allowed": plain(allowed), "denied": plain(denied)}))


def plain(result) -> dict:
    return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


anyio.run(main, *sys.argv[1:])
