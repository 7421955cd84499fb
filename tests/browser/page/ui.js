// Makes the requests of the Redflow UI in the same form: the same methods and headers, no token. Records everything it
// receives and what the UI would show: states of nodes, the chat window, the canvas. The tests drive it through
// `window.ui`.

import { addNode, connectNodes, loadNodes, nodesToSave, removeNode, removeWire } from "./canvas.js";

/** The base address of Node-RED, here of the sidecar. */
const api = new URL(location.href).searchParams.get("api");

/** The addresses of the socket. After a lost connection the UI tries the other one. */
const SOCKET_PATHS = ["/observability", "/admin/observability"];

/** The shortest and the longest time before the UI connects again. */
const [RECONNECT_MS, MAX_RECONNECT_MS] = [2_000, 30_000];

/** The codes of a lost connection. */
const LOST = [1001, 1006];

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
/** The open chat window. A page loads no history, so it is empty after a reload. */
const chatWindow = { messages: [], isWaiting: false };
/** The frames in which the chat window has seen port 4. */
const answeredFrames = new Set();
/** The connections of the permanent socket: `path`, and the code once it is closed. */
const connections = [];
let reconnecting;

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

/** Opens the permanent socket, and opens it again when it is closed. */
function connect(failures = 0) {
  clearTimeout(reconnecting);
  const lost = connections.filter(({ code }) => LOST.includes(code)).length;
  const connection = { path: SOCKET_PATHS[lost % SOCKET_PATHS.length] };
  connections.push(connection);
  const socket = openSocket(connection.path);
  socket.onmessage = ({ data }) => {
    receivedTexts.push(data);
    const event = JSON.parse(data);
    events.push(event);
    updateStates(event);
    const behavior = event.data?.semantics?.behavior ?? "";
    draw("events", `${event.event} ${event.nodeId ?? ""} ${behavior}`, behavior === "terminated" ? "bad" : "");
    void onAgentOutput(event);
  };
  socket.onclose = ({ code }) => {
    connection.code = code;
    draw("calls", `socket ${connection.path}  closed ${code}`, "bad");
    const delay = Math.min(RECONNECT_MS * 2 ** failures, MAX_RECONNECT_MS);
    // An attempt that fails is followed by the next one.
    reconnecting = setTimeout(() => void connect(failures + 1).catch(() => {}), delay);
  };
  return new Promise((resolve, reject) => {
    socket.onopen = () => {
      failures = 0;
      resolve("open");
    };
    socket.onerror = () => reject(new Error("the socket did not open"));
  });
}

/** Keeps the page offline until a test calls `connect`. */
const stayOffline = () => clearTimeout(reconnecting);

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

/** Sends a message in a chat. Its window waits for an answer. */
function sendChat(chat, message) {
  const id = `msg-${Date.now()}-${Math.random().toString(36).slice(2, 11)}`;
  const chatMessage = { id, type: "user", content: message, timestamp: Date.now() };
  if (chat === chatWindow.chat) {
    chatWindow.messages.push(chatMessage);
    chatWindow.isWaiting = true;
  }
  return requestJson("POST", `/chat-node/${chat}/send`, { body: { message, chatMessage } });
}

const history = (chat) => requestJson("GET", `/chat-node/${chat}/history`);

/** Opens the window of a chat. */
function openChat(chat, agent) {
  Object.assign(chatWindow, { chat, agent, messages: [], isWaiting: false });
}

/** Requests the history after an answer of the agent, and shows its last answer. Ignores what is not sampled. */
async function onAgentOutput({ event, nodeId, frameId, data }) {
  if (event !== "node:output" || nodeId !== chatWindow.agent || data.sampled === false) {
    return;
  }
  const ports = data.outputs.map(({ port }) => port);
  if (ports.includes(4)) {
    answeredFrames.add(frameId);
  } else if (!ports.includes(3) || (frameId && answeredFrames.has(frameId))) {
    return;
  }
  const response = await history(chatWindow.chat);
  const last = response.body?.history?.filter(({ type }) => type === "agent").at(-1);
  if (last && !chatWindow.messages.some(({ id }) => id === last.id)) {
    chatWindow.messages.push(last);
  }
  chatWindow.isWaiting = false;
}

/** Loads the canvas from the flow. */
async function loadCanvas() {
  loadNodes((await flows()).body.flows);
}

/** Save & Deploy of the canvas, which the UI then loads again. */
async function saveCanvas() {
  const answer = await deploy(nodesToSave());
  await loadCanvas();
  return answer;
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
const records = { calls, events, receivedTexts, states, chatWindow, connections };
const actions = { request, requestJson, postInject, probe, flows, startUp, deploy, inject, connect, stayOffline };
const chatActions = { sendChat, openChat, history };
const canvasActions = { loadCanvas, saveCanvas, addNode, removeNode, connectNodes, removeWire };
window.ui = { ...records, ...actions, ...chatActions, ...canvasActions, simpleRequests };
