// An MCP server on standard input and output, for the console's tests. Its tools, resources and prompts are in a file, which the
// test changes. Without the file it ends at once.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const file = process.argv[2];
const read = () => JSON.parse(readFileSync(file, "utf8"));
read();

/** The results of the methods that it knows. */
const METHODS = {
  initialize: () => ({ protocolVersion: "2025-11-25", capabilities: { tools: {}, resources: {}, prompts: {} }, serverInfo: { name: "test-files", version: "1.2.3" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools: read().tools ?? [] }),
  "tools/call": () => ({ content: [{ type: "text", text: "done" }] }),
  "resources/list": () => ({ resources: read().resources ?? [] }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  "prompts/list": () => ({ prompts: read().prompts ?? [] }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  // A notification has no answer.
  if (id !== undefined && method !== undefined) {
    const answer = Object.hasOwn(METHODS, method) ? { result: METHODS[method]() } : { error: { code: -32601, message: "Method not found" } };
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
  }
}
