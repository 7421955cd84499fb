// The flow of the console's tests: an agent that answers, one that fails, one whose call has an unknown outcome, and one that is
// refused.

const at = (z, x, y) => ({ z, x, y });

const agent = (id, name, x, y, wires, more = {}) => ({
  ...{ id, type: "agent-core", name, ...at("desk", x, y), strategy: "react", maxIterations: 5 },
  ...{ allowedTools: [], stopConditions: [], debug: false, wires },
  ...more,
});

const model = (id, y, agent, replies) => ({
  ...{ id, type: "scripted-model", name: `Model of ${agent}`, ...at("desk", 420, y), delayMs: 40, replies, wires: [[agent]] },
});

/** The price of an answer of the AI Agent's model. */
const usage = { inputTokens: 210, outputTokens: 36, cost: 0.0042 };

const call = (tool, input, confidence) => ({ action: "tool", tool, input, confidence });
const final = (message, confidence = 0.9) => ({ action: "final", message, confidence });

/** The nodes. `post` is the address of a server that breaks connections off. */
export function nodes(post) {
  return [
    { id: "desk", type: "tab", label: "Front desk", disabled: false, info: "" },
    agent("sums", "Sums", 240, 80, [["sums-model"], ["calc"], [], ["answer"], []], { allowedTools: ["calculator"] }),
    model("sums-model", 40, "sums", [call("calculator", { expression: "6 * 7" }, 0.35), call("calculator", { expression: "42 / 2" }, 0.7), final("It is 21.")]),
    { id: "calc", type: "calculator-tool", name: "", ...at("desk", 420, 80), wires: [["sums", "prose"]] },
    { id: "answer", type: "debug", name: "Answer", ...at("desk", 420, 120), active: true, complete: "payload", targetType: "msg", wires: [] },
    agent("prose", "Prose", 240, 200, [["prose-model"], ["calc"], [], ["answer"], []], { allowedTools: ["calculator"] }),
    model("prose-model", 200, "prose", ["Sure! I will not answer in JSON."]),
    {
      ...{ id: "letters", type: "ai-agent", name: "Letters", ...at("desk", 240, 320), model: "letters-model", tools: ["post"] },
      ...{ systemPrompt: "You write letters.", wires: [["answer"], []] },
    },
    {
      ...{ id: "letters-model", type: "scripted-model", name: "Writer", ...at("desk", 420, 300), delayMs: 0, wires: [[]] },
      replies: [
        { text: "I post it.", toolCalls: [{ name: "http_request", arguments: { url: `${post}/letter`, method: "POST", body: "Dear Ada" } }], usage },
        { text: "It is posted.", toolCalls: [], usage },
      ],
    },
    {
      ...{ id: "post", type: "http-request-tool", name: "Post office", ...at("desk", 420, 340), description: "Posts a letter." },
      ...{ hosts: [new URL(post).host], methods: ["POST"], wires: [[]] },
    },
    // A model is no output.
    agent("crossed", "Crossed wires", 240, 440, [["crossed-model"], [], [], ["crossed-model"], []]),
    model("crossed-model", 440, "crossed", [final("Never.")]),
  ];
}
