// The official TypeScript SDK as a client. Prints one JSON object: what it saw.
//
//   node typescript.mjs ERA TOOL INPUT http URL        the token is in REDFLOW_TOKEN
//   node typescript.mjs ERA TOOL INPUT stdio COMMAND ARG…
//
// ERA is `legacy` (until 2025-11-25) or `modern` (2026-07-28).

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [era, tool, input, kind, ...target] = process.argv.slice(2);
const mode = era === "legacy" ? "legacy" : { pin: "2026-07-28" };
const client = new Client({ name: "redflow-tests", version: "1.0.0" }, { versionNegotiation: { mode } });
const headers = { authorization: `Bearer ${process.env.REDFLOW_TOKEN}` };
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } })
    : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
await client.connect(transport);
const { tools } = await client.listTools();
const progress = [];
const result = await client.callTool(
  { name: tool, arguments: JSON.parse(input) },
  { onprogress: ({ progress: at }) => progress.push(at) },
);
const { resources } = await client.listResources();
const read = resources.length > 0 ? await client.readResource({ uri: resources[0].uri }) : null;
await client.close();
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), result, progress, resources, read }));
