// The flows of the scenarios.

import { TOKEN } from "../kit/restartable-sidecar.mjs";

const KEY = "sk-the-key-of-the-provider";

/** A model's answer that ends the run. */
export const finalAnswer = (message, confidence = 0.95) => ({ action: "final", message, confidence });

/** A model's answer that calls a tool. */
export const toolCall = (tool, input, confidence = 0.8) => ({
  action: "tool",
  tool,
  input,
  confidence,
  message: `Asking ${tool}.`,
});

const at = (z, x, y) => ({ z, x, y });

export const inject = (id, to, z, x, y) => ({
  ...{ id, type: "inject", name: "Ask", ...at(z, x, y), wires: [[to]] },
  ...{ props: [{ p: "payload" }], payload: "What is 6 times 7?", payloadType: "str" },
  ...{ topic: "", repeat: "", crontab: "", once: false, onceDelay: 0.1 },
});

export const debug = (id, z, x, y) => ({
  ...{ id, type: "debug", name: "Answer", ...at(z, x, y), wires: [] },
  ...{ active: true, tosidebar: true, console: false, tostatus: false },
  ...{ complete: "payload", targetType: "msg", statusVal: "", statusType: "auto" },
});

export const agent = (id, wires, z, x, y, more = {}) => ({
  ...{ id, type: "agent-core", name: "Desk", ...at(z, x, y), wires, runtime: "runtime", strategy: "react" },
  ...{ maxIterations: 5, allowedTools: ["calculator", "send_mail"], stopConditions: [] },
  ...{ sessionId: "", timeout: 300_000, debug: true, ...more },
});

export const calculator = (id, z, x, y) => ({
  ...{ id, type: "calculator-tool", name: "", toolName: "", description: "", ...at(z, x, y), wires: [[]] },
});

const SCHEMA = {
  type: "object",
  properties: { to: { type: "string" }, text: { type: "string" } },
  additionalProperties: false,
};

/** The runtime that connects to the sidecar of the fixture. */
const runtime = (fixture) => ({
  ...{ id: "runtime", type: "redflow-runtime", name: "", mode: "remote", url: fixture.sidecar.url() },
  ...{ binary: "", dataDir: "", queueSeconds: 60, maxQueued: 1000, maxHeldRuns: 1000, instance: "", events: false },
  credentials: { token: TOKEN },
});

/** The fake model of the fixture. */
export const model = (fixture, z, x, y) => ({
  ...{ id: "model", type: "openai-model", name: "Fake model", ...at(z, x, y), wires: [[]] },
  ...{ model: "gpt-4.1-mini", baseURL: fixture.model.url, maxRetries: 0, credentials: { apiKey: KEY } },
});

/** An at-most-once tool that never replies: a run that calls it waits for a person. */
export const mail = (z, x, y) => [
  {
    ...{ id: "mail", type: "flow-tool", name: "Mail", ...at(z, x, y), wires: [["post"]] },
    ...{ toolName: "send_mail", description: "Sends a mail.", inputSchema: JSON.stringify(SCHEMA) },
    ...{ effect: "at_most_once", timeout: 50, onUnknown: "wait" },
  },
  {
    ...{ id: "post", type: "function", name: "Post", ...at(z, x + 140, y), wires: [["back"]] },
    ...{ func: "return null;", outputs: 1, timeout: 0, noerr: 0, initialize: "", finalize: "", libs: [] },
  },
  { id: "back", type: "flow-tool-return", name: "", ...at(z, x + 300, y), wires: [] },
];

/** One agent with its services: `ask` → `agent` with `model`, `calc` and `mail` → `answer`. */
export function desk(fixture, more = {}) {
  const z = "desk";
  return [
    { id: z, type: "tab", label: "Desk", disabled: false, info: "" },
    runtime(fixture),
    inject("ask", "agent", z, 100, 160),
    agent("agent", [["model"], ["calc", "mail"], [], ["answer"], []], z, 260, 160, more),
    model(fixture, z, 470, 80),
    calculator("calc", z, 470, 130),
    ...mail(z, 450, 180),
    debug("answer", z, 460, 240),
  ];
}

/** The nodes without credentials, as Node-RED returns them after a deploy. */
export const withoutCredentials = (flows) => flows.map(({ credentials: _, ...node }) => node);
