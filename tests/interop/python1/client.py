"""The official Python SDK, major version 1: `client.py legacy URL SERVER ARGUMENT...`."""

import json
import sys

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(url: str, command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        allowed = await session.call_tool("http_request", {"method": "GET", "url": url})
        denied = await session.call_tool("http_request", {"method": "DELETE", "url": url})
        await session.send_ping()
    names = [tool.name for tool in tools.tools]
    print(json.dumps({"tools": names, "allowed": plain(allowed), "denied": plain(denied)}))


def plain(result) -> dict:
    return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


anyio.run(main, *sys.argv[2:])
