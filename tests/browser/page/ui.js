// Makes the calls of the Redflow UI, each as that UI makes it: the same way, the same headers, no token. Remembers
// everything it hears, and what it would show. The tests drive it through `window.ui`.

/** Where it believes Node-RED is: the base of every address. */
const api = new URL(location.href).searchParams.get("api");

/** How long the UI waits for a socket to open before it gives up on it for good. */
const PROBE_MS = 2_000;

const V2 = { "Node-RED-API-Version": "v2" };

/** Every call: how, where, and what came of it. */
const calls = [];
/** Every message of the socket. */
const events = [];
/** Every text that came in, whatever it is. */
const heard = [];
/** The nodes it would show, each as `running`, `idle`, `warning` or `error`. */
const states = {};
/** What it would show in the chat window that is open: one thing for each output of its agent that is meant for it. */
const bubbles = [];
let open;

function draw(list, text, bad) {
  const row = document.createElement("li");
  row.textContent = text;
  row.className = bad ? "bad" : "";
  document.getElementById(list).append(row);
}

function made(method, path, outcome) {
  calls.push({ method, path, ...outcome });
  const came = outcome.failed ?? outcome.status;
  draw("calls", `${method} ${path}  ${came}`, outcome.failed || outcome.status >= 400);
  return outcome;
}

function parsed(text, type) {
  heard.push(text);
  return type.includes("application/json") ? JSON.parse(text) : text;
}

/** One call. What comes of it is told, never thrown: `{status, type, body}`, or `{failed}` if the page may not know. */
async function call(method, path, { headers = {}, body } = {}) {
  const content = body === undefined ? {} : { "Content-Type": "application/json" };
  const init = { method, headers: { ...content, ...headers }, body: body && JSON.stringify(body) };
  try {
    const answer = await fetch(api + path, init);
    const type = answer.headers.get("content-type") ?? "";
    return made(method, path, { status: answer.status, type, body: parsed(await answer.text(), type) });
  } catch (error) {
    return made(method, path, { failed: String(error) });
  }
}

/** One call of those that go through the UI's client, which wants JSON. */
const ask = (method, path, { headers = {}, body } = {}) =>
  call(method, path, { headers: { Accept: "application/json", ...headers }, body });

/** Fires an inject node: not by `fetch`, and with the type of a body that is not there. */
function fire(path) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("POST", api + path);
    request.setRequestHeader("Content-Type", "application/json");
    request.onerror = () => done(made("POST", path, { failed: "the request failed" }));
    request.onload = () => {
      const type = request.getResponseHeader("Content-Type") ?? "";
      done(made("POST", path, { status: request.status, type, body: parsed(request.responseText, type) }));
    };
    request.send();
  });
}

function shown(event) {
  const { nodeId, data } = event;
  if (event.event === "frame:start" && data.triggerNodeId) {
    states[data.triggerNodeId] = "running";
  } else if (event.event === "node:input") {
    states[nodeId] = "running";
  } else if (event.event === "node:output") {
    const colours = { filtered: "warning", terminated: "error" };
    states[nodeId] = colours[data.semantics?.behavior] ?? "idle";
  }
}

function socket(path) {
  return new WebSocket(api.replace(/^http/, "ws") + path);
}

/** Whether a socket opens in time: `open`, `late` or `refused`. Closes it. */
function probe(path = "/observability") {
  return new Promise((done) => {
    const trial = socket(path);
    const late = setTimeout(() => end("late"), PROBE_MS);
    const end = (how) => {
      clearTimeout(late);
      trial.onopen = trial.onerror = trial.onclose = null;
      trial.close();
      draw("calls", `socket ${path}  ${how}`, how !== "open");
      done(how);
    };
    trial.onopen = () => end("open");
    trial.onerror = trial.onclose = () => end("refused");
  });
}

/** Opens the socket that stays. */
function connect() {
  const real = socket("/observability");
  real.onmessage = ({ data }) => {
    heard.push(data);
    const event = JSON.parse(data);
    events.push(event);
    shown(event);
    const behavior = event.data?.semantics?.behavior ?? "";
    draw("events", `${event.event} ${event.nodeId ?? ""} ${behavior}`, behavior === "terminated");
    answered(event);
  };
  return new Promise((done, failed) => {
    real.onopen = () => done("open");
    real.onerror = () => failed(new Error("the socket did not open"));
  });
}

const flows = () => ask("GET", "/flows", { headers: V2 });

/** What the UI does when it is opened. */
async function startUp() {
  const [loaded, ...probes] = await Promise.all([flows(), probe(), probe()]);
  return { loaded, probes, socket: await connect() };
}

/** Save & Deploy: the revision is asked for right before. */
async function deploy(nodes, rev) {
  rev ??= (await flows()).body.rev;
  const headers = { ...V2, "Node-RED-Deployment-Type": "full" };
  return ask("POST", "/flows", { headers, body: { rev, flows: nodes } });
}

/** Runs a flow: one try with each address that an inject node may have, until one knows it. */
async function inject(id) {
  const tries = [];
  for (const path of [`/inject/${id}`, `/admin/inject/${id}`]) {
    tries.push(await fire(path));
    if (tries.at(-1).status !== 404) {
      break;
    }
  }
  return tries;
}

/** Says something in a chat. */
function say(chat, message) {
  const id = `msg-${Date.now()}-${Math.random().toString(36).slice(2, 11)}`;
  const chatMessage = { id, type: "user", content: message, timestamp: Date.now() };
  return ask("POST", `/chat-node/${chat}/send`, { body: { message, chatMessage } });
}

const history = (chat) => ask("GET", `/chat-node/${chat}/history`);

/** Opens the window of a chat: whenever its agent sends something for it, the window asks what was said last. */
function look(chat, agent) {
  open = { chat, agent };
}

async function answered({ event, nodeId, data }) {
  const output = event === "node:output" && nodeId === open?.agent ? data.outputs[0] : undefined;
  if (output?.port !== 3 && output?.port !== 4) {
    return;
  }
  const bubble = { port: output.port, action: output.payload.agentResult?.action };
  bubbles.push(bubble);
  const answer = await history(open.chat);
  const said = answer.body?.history?.filter(({ type }) => type === "agent") ?? [];
  bubble.said = said.at(-1)?.content ?? "";
}

/** What a page can send without asking first whether it may, and never hears of. */
const unasked = {
  /** A request whose answer is hidden. With `no-referrer` the browser does not say where it comes from. */
  fetch: async (method, path, { body, referrerPolicy } = {}) => {
    const answer = await fetch(api + path, { method, mode: "no-cors", body, referrerPolicy });
    return answer.type;
  },
  /** A picture that is none. */
  picture: (path) =>
    new Promise((done) => {
      const picture = new Image();
      picture.onload = () => done("a picture");
      picture.onerror = () => done("no picture");
      picture.src = api + path;
    }),
  /** A form that is sent into a frame. */
  form: (path) =>
    new Promise((done) => {
      const frame = Object.assign(document.createElement("iframe"), { name: "hole" });
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: api + path, target: "hole", enctype: "text/plain" });
      document.body.append(frame, form);
      frame.onload = () => done("sent");
      form.submit();
    }),
};

document.querySelector("h1").textContent = `${location.origin} talks to ${api}`;
const memory = { calls, events, heard, states, bubbles };
const deeds = { call, ask, fire, probe, flows, startUp, deploy, inject, say, look, history, unasked };
window.ui = { ...memory, ...deeds };
