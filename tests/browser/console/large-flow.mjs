// A flow for lists and large contents: a quick agent, an agent that starts many others, one with a long run, one whose model is a
// fake server, and a tab with more nodes than the console draws. Its names and texts are hostile.

const at = (z, x, y) => ({ z, x, y });

/** The runs that one message to `crowd` starts. */
export const CHILDREN = 90;
/** The nodes of the tab `large`. */
export const LARGE_NODES = 2_100;
/** The iterations of the agent `long`, and the calls in each. */
export const [LONG_ITERATIONS, LONG_CALLS] = [60, 4];
/** Markup, a script, a mark that turns the direction of text, and a link. */
export const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202Egpj.exe javascript:alert(1)';
/** The key of the fake model's server. */
export const KEY = "sk-never-shown-7f3a91";

const coreAgent = (id, name, z, wires, more = {}) => ({
  ...{ id, type: "agent-core", name, ...at(z, 240, 80), strategy: "react", maxIterations: 5 },
  ...{ allowedTools: ["calculator"], stopConditions: [], debug: false, wires: [[`${id}-model`], ["calc"], [], wires, []] },
  ...more,
});

const scripted = (id, z, agent, replies, more = {}) => ({ id, type: "scripted-model", name: "", ...at(z, 420, 80), delayMs: 0, replies, wires: agent, ...more });

const final = (message) => ({ action: "final", message, confidence: 0.9 });

/** The answers of the long run: first a letter whose outcome is unknown, then many calculations, then the end. */
function longReplies(post) {
  const usage = { inputTokens: 10, outputTokens: 2 };
  const letter = { name: "http_request", arguments: { url: `${post}/letter`, method: "POST", body: "Dear Ada" } };
  const sums = Array.from({ length: LONG_CALLS }, (_, index) => ({ name: "calculator", arguments: { expression: `${index} + 1` } }));
  return [
    { text: "First a letter.", toolCalls: [letter], usage },
    ...Array.from({ length: LONG_ITERATIONS - 2 }, () => ({ text: "More sums.", toolCalls: sums, usage })),
    { text: "The last word.", toolCalls: [], usage },
  ];
}

const aiAgent = (id, name, z, model, tools) => ({
  ...{ id, type: "ai-agent", name, ...at(z, 240, 320), model, tools, systemPrompt: "You answer.", maxIterations: 100 },
  ...{ parallelTools: 4, wires: [[], []] },
});

/** The nodes. `post` is the address of a server that breaks connections off, `model` that of a fake model. */
export function largeNodes(post, model) {
  const children = Array.from({ length: CHILDREN }, (_, index) => `child-${index}`);
  return [
    { id: "desk", type: "tab", label: `Desk ${HOSTILE}`, disabled: false, info: "" },
    { id: "calc", type: "calculator-tool", name: HOSTILE, ...at("desk", 420, 120), wires: [["quick", "hostile", "crowd", ...children]] },
    coreAgent("quick", "Quick", "desk", []),
    scripted("quick-model", "desk", [["quick"]], [final("Done.")]),
    coreAgent("hostile", HOSTILE, "desk", []),
    scripted("hostile-model", "desk", [["hostile"]], [
      { action: "tool", tool: "calculator", input: { expression: HOSTILE }, confidence: 0.5 },
      final(`Answer ${HOSTILE}`),
    ]),
    coreAgent("broken", "Broken", "desk", []),
    scripted("broken-model", "desk", [["broken"]], [`Refused ${HOSTILE}`]),
    coreAgent("crowd", "Crowd", "desk", children),
    scripted("crowd-model", "desk", [["crowd"]], [final("All of you.")]),
    ...children.flatMap((id, index) => [
      coreAgent(id, `Child ${index + 1}`, "desk", []),
      scripted(`${id}-model`, "desk", [[id]], [final("Heard.")]),
    ]),
    aiAgent("long", "Long", "desk", "long-model", ["post", "calc-long"]),
    scripted("long-model", "desk", [[]], longReplies(post), { delayMs: 5 }),
    { id: "calc-long", type: "calculator-tool", name: "", ...at("desk", 420, 520), wires: [[]] },
    {
      ...{ id: "post", type: "http-request-tool", name: "Post office", ...at("desk", 420, 340), description: `Posts. ${HOSTILE}` },
      ...{ hosts: [new URL(post).host], methods: ["POST"], wires: [[]] },
    },
    aiAgent("book", "Book", "desk", "book-model", []),
    {
      ...{ id: "book-model", type: "openai-model", name: "Fake", ...at("desk", 420, 400), wires: [[]] },
      ...{ model: "gpt-4.1-mini", baseURL: model, maxRetries: 0, credentials: { apiKey: KEY } },
    },
    { id: "large", type: "tab", label: "Large", disabled: false, info: "" },
    ...Array.from({ length: LARGE_NODES }, (_, index) => ({
      ...{ id: `n${index}`, type: "debug", name: `Node ${index}`, ...at("large", 100 + (index % 40) * 150, 60 + Math.floor(index / 40) * 50) },
      ...{ active: true, complete: "payload", targetType: "msg", wires: [] },
    })),
  ];
}
