// An agent of the AI SDK of Vercel, whose MCP client passes the names of tools on to the model. Prints one JSON object:
// what it saw.
//
//     node vercel.mjs MCP-URL MODEL-URL        the token is in REDFLOW_TOKEN

import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount } from "ai";

const [url, baseURL] = process.argv.slice(2);
const headers = { authorization: `Bearer ${process.env.REDFLOW_TOKEN}` };
const client = await createMCPClient({ transport: { type: "http", url, headers } });
const tools = await client.tools();
const { text } = await generateText({
  model: createOpenAI({ apiKey: "key-of-the-mock", baseURL }).chat("gpt-mock"),
  tools,
  stopWhen: isStepCount(3),
  maxRetries: 0,
  prompt: "How warm is it?",
});
await client.close();
console.log(JSON.stringify({ tools: Object.keys(tools), answer: text }));
