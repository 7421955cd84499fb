"""Agents of frameworks whose MCP clients pass the names of tools on to the model. Prints one JSON object: what it saw.

    python frameworks.py FRAMEWORK MCP-URL MODEL-URL        the token is in REDFLOW_TOKEN

FRAMEWORK is `openai-agents`, `langchain` or `pydantic-ai`. The model at MODEL-URL has the API of OpenAI. The adapters
of LangChain need the Python SDK of MCP before version 2, which stands in a folder of its own.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

FRAMEWORK, MCP_URL, MODEL_URL = sys.argv[1:]
if FRAMEWORK == "langchain":
    sys.path.insert(0, str(Path(sys.prefix) / "langchain"))
HEADERS = {"authorization": f"Bearer {os.environ['REDFLOW_TOKEN']}"}
QUESTION = "How warm is it?"


def openai_client():
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key="key-of-the-mock", base_url=MODEL_URL, max_retries=0)


async def openai_agents():
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStreamableHttp

    set_tracing_disabled(True)
    params = {"url": MCP_URL, "headers": HEADERS, "timeout": 60}
    async with MCPServerStreamableHttp(params=params, client_session_timeout_seconds=60) as server:
        tools = [tool.name for tool in await server.list_tools()]
        model = OpenAIChatCompletionsModel(model="gpt-mock", openai_client=openai_client())
        agent = Agent(name="asker", model=model, mcp_servers=[server])
        return tools, (await Runner.run(agent, QUESTION)).final_output


async def langchain():
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.client import MultiServerMCPClient

    server = {"transport": "streamable_http", "url": MCP_URL, "headers": HEADERS}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"redflow": server}).get_tools()}
    model, listed = openai_client().chat.completions, [convert_to_openai_tool(tool) for tool in tools.values()]
    messages = [{"role": "user", "content": QUESTION}]
    asked = (await model.create(model="gpt-mock", messages=messages, tools=listed)).choices[0].message
    call = asked.tool_calls[0]
    result = await tools[call.function.name].ainvoke(
        {"type": "tool_call", "id": call.id, "name": call.function.name, "args": json.loads(call.function.arguments)}
    )
    messages += [asked, {"role": "tool", "tool_call_id": call.id, "content": result.text}]
    answer = await model.create(model="gpt-mock", messages=messages, tools=listed)
    return list(tools), answer.choices[0].message.content


async def pydantic_ai():
    from fastmcp.client import Client
    from fastmcp.client.transports import StreamableHttpTransport
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    toolset = MCPToolset(Client(StreamableHttpTransport(MCP_URL, headers=HEADERS)))
    model = OpenAIChatModel("gpt-mock", provider=OpenAIProvider(openai_client=openai_client()))
    async with toolset:
        tools = [tool.name for tool in await toolset.list_tools()]
        return tools, (await Agent(model, toolsets=[toolset]).run(QUESTION)).output


run = {"openai-agents": openai_agents, "langchain": langchain, "pydantic-ai": pydantic_ai}[FRAMEWORK]
tools, answer = asyncio.run(run())
print(json.dumps({"tools": tools, "answer": answer}))
