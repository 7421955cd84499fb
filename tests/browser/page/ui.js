// Makes the requests of the Redflow UI in the same form: the same methods and headers, no token. Records everything it
// receives and what the UI would show. The tests drive it through `window.ui`.

/** The base address of Node-RED, here of the sidecar. */
const api = new URL(location.href).searchParams.get("api");

/** How long the UI waits for a socket to open before it gives up. */
const PROBE_MS = 2_000;

const V2 = { "Node-RED-API-Version": "v2" };

/** Every request with its outcome. */
const calls = [];
/** Every message of the socket. */
const events = [];
/** Every received text. */
const receivedTexts = [];
/** The state of each node as the UI would show it: `running`, `idle`, `warning` or `error`. */
const states = {};
/** The bubbles of the open chat window: one for each output of its agent to the chat. */
const bubbles = [];
let open;

function draw(list, text, className) {
  const row = document.createElement("li");
  row.textContent = text;
  row.className = className;
  document.getElementById(list).append(row);
}

function record(method, path, outcome) {
  calls.push({ method, path, ...outcome });
  const isBad = outcome.failed || outcome.status >= 400;
  draw("calls", `${method} ${path}  ${outcome.failed ?? outcome.status}`, isBad ? "bad" : "");
  return outcome;
}

function parse(text, type) {
  receivedTexts.push(text);
  return type.includes("application/json") ? JSON.parse(text) : text;
}

/** Sends a request. Returns `{status, type, body}`, or `{failed}` if the browser hides the response. Never throws. */
async function request(method, path, { headers = {}, body } = {}) {
  const content = body === undefined ? {} : { "Content-Type": "application/json" };
  const init = { method, headers: { ...content, ...headers }, body: body && JSON.stringify(body) };
  try {
    const response = await fetch(api + path, init);
    const type = response.headers.get("content-type") ?? "";
    return record(method, path, { status: response.status, type, body: parse(await response.text(), type) });
  } catch (error) {
    return record(method, path, { failed: String(error) });
  }
}

/** Sends a request as the UI's client does, which accepts JSON. */
const requestJson = (method, path, { headers = {}, body } = {}) =>
  request(method, path, { headers: { Accept: "application/json", ...headers }, body });

/** Fires an inject node as the UI does: with XMLHttpRequest, and with a content type but no body. */
function postInject(path) {
  return new Promise((resolve) => {
    const xhr = new XMLHttpRequest();
    xhr.open("POST", api + path);
    xhr.setRequestHeader("Content-Type", "application/json");
    xhr.onerror = () => resolve(record("POST", path, { failed: "the request failed" }));
    xhr.onload = () => {
      const type = xhr.getResponseHeader("Content-Type") ?? "";
      resolve(record("POST", path, { status: xhr.status, type, body: parse(xhr.responseText, type) }));
    };
    xhr.send();
  });
}

/** Updates the states as the UI does. */
function updateStates(event) {
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

function openSocket(path) {
  return new WebSocket(api.replace(/^http/, "ws") + path);
}

/** Whether a socket opens in time: `open`, `late` or `refused`. Closes it. */
function probe(path = "/observability") {
  return new Promise((resolve) => {
    const socket = openSocket(path);
    const timer = setTimeout(() => finish("late"), PROBE_MS);
    const finish = (outcome) => {
      clearTimeout(timer);
      socket.onopen = socket.onerror = socket.onclose = null;
      socket.close();
      draw("calls", `socket ${path}  ${outcome}`, outcome === "open" ? "" : "bad");
      resolve(outcome);
    };
    socket.onopen = () => finish("open");
    socket.onerror = socket.onclose = () => finish("refused");
  });
}

/** Opens the permanent socket. */
function connect() {
  const socket = openSocket("/observability");
  socket.onmessage = ({ data }) => {
    receivedTexts.push(data);
    const event = JSON.parse(data);
    events.push(event);
    updateStates(event);
    const behavior = event.data?.semantics?.behavior ?? "";
    draw("events", `${event.event} ${event.nodeId ?? ""} ${behavior}`, behavior === "terminated" ? "bad" : "");
    void onAgentOutput(event);
  };
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve("open");
    socket.onerror = () => reject(new Error("the socket did not open"));
  });
}

const flows = () => requestJson("GET", "/flows", { headers: V2 });

/** The requests of the UI when it is opened. */
async function startUp() {
  const [loaded, ...probes] = await Promise.all([flows(), probe(), probe()]);
  return { loaded, probes, socket: await connect() };
}

/** Save & Deploy. The UI requests the revision right before. */
async function deploy(nodes, rev) {
  rev ??= (await flows()).body.rev;
  const headers = { ...V2, "Node-RED-Deployment-Type": "full" };
  return requestJson("POST", "/flows", { headers, body: { rev, flows: nodes } });
}

/** Runs a flow: tries both addresses of an inject node until one is known. */
async function inject(id) {
  const attempts = [];
  for (const path of [`/inject/${id}`, `/admin/inject/${id}`]) {
    attempts.push(await postInject(path));
    if (attempts.at(-1).status !== 404) {
      break;
    }
  }
  return attempts;
}

/** Sends a message in a chat. */
function sendChat(chat, message) {
  const id = `msg-${Date.now()}-${Math.random().toString(36).slice(2, 11)}`;
  const chatMessage = { id, type: "user", content: message, timestamp: Date.now() };
  return requestJson("POST", `/chat-node/${chat}/send`, { body: { message, chatMessage } });
}

const history = (chat) => requestJson("GET", `/chat-node/${chat}/history`);

/** Opens the window of a chat. It requests the history after each output of its agent. */
function openChat(chat, agent) {
  open = { chat, agent };
}

async function onAgentOutput({ event, nodeId, data }) {
  const output = event === "node:output" && nodeId === open?.agent ? data.outputs[0] : undefined;
  if (output?.port !== 3 && output?.port !== 4) {
    return;
  }
  const bubble = { port: output.port, action: output.payload.agentResult?.action };
  bubbles.push(bubble);
  const response = await history(open.chat);
  const items = response.body?.history?.filter(({ type }) => type === "agent") ?? [];
  bubble.content = items.at(-1)?.content ?? "";
}

/** Requests that a page can send without a CORS preflight, and whose response it cannot read. */
const simpleRequests = {
  /** A request with a hidden response. With `no-referrer` the browser does not send the origin. */
  fetch: async (method, path, { body, referrerPolicy } = {}) => {
    const init = { method, mode: "no-cors", body, referrerPolicy };
    const response = await fetch(api + path, init);
    return response.type;
  },
  /** An image element. */
  image: (path) =>
    new Promise((resolve) => {
      const image = new Image();
      image.onload = () => resolve("an image");
      image.onerror = () => resolve("no image");
      image.src = api + path;
    }),
  /** A form that is submitted into a frame. */
  form: (path) =>
    new Promise((resolve) => {
      const frame = Object.assign(document.createElement("iframe"), { name: "hole" });
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: api + path, target: "hole", enctype: "text/plain" });
      document.body.append(frame, form);
      frame.onload = () => resolve("sent");
      form.submit();
    }),
};

document.querySelector("h1").textContent = `${location.origin} calls ${api}`;
const records = { calls, events, receivedTexts, states, bubbles };
const actions = { request, requestJson, postInject, probe, flows, startUp, deploy, inject };
const chatActions = { sendChat, openChat, history };
window.ui = { ...records, ...actions, ...chatActions, simpleRequests };
