"""The official Python SDK as a client. Prints one JSON object: what it saw.

    python python.py ERA TOOL INPUT http URL        the token is in REDFLOW_TOKEN
    python python.py ERA TOOL INPUT stdio COMMAND ARG…

ERA is `legacy` (until 2025-11-25) or `modern` (2026-07-28).
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

ERA, TOOL, INPUT, KIND, *TARGET = sys.argv[1:]


async def main():
    progress = []

    async def on_progress(at, total, message):
        progress.append(at)

    if KIND == "http":
        headers = {"authorization": f"Bearer {os.environ['REDFLOW_TOKEN']}"}
        server = streamable_http_client(TARGET[0], http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    else:
        server = StdioServerParameters(command=TARGET[0], args=TARGET[1:], env=dict(os.environ))
    mode = "legacy" if ERA == "legacy" else "2026-07-28"
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(TOOL, json.loads(INPUT), progress_callback=on_progress)
        resources = (await client.list_resources()).resources
        read = await client.read_resource(resources[0].uri) if resources else None

    def plain(value):
        return value and value.model_dump(mode="json", by_alias=True, exclude_none=True)

    seen = {
        "tools": [tool.name for tool in tools],
        "result": plain(result),
        "progress": progress,
        "resources": [plain(resource) for resource in resources],
        "read": plain(read),
    }
    print(json.dumps(seen))


asyncio.run(main())
