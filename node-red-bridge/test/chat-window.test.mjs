// The chat window: which messages and images it sends, and what it says about those that it cannot send.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Window } from "happy-dom";
import { LANGUAGES, translator } from "./kit/texts.mjs";
import { until } from "./kit/until.mjs";

const { window } = new Window();
const { document } = window;
Object.assign(globalThis, { window, document, Node: window.Node });

/** A reader that ends when the test says so. */
class FakeReader {
  static waiting = [];
  listeners = {};
  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }
  readAsDataURL({ type, broken }) {
    FakeReader.waiting.push(() => {
      this.result = `data:${type};base64,AAAA`;
      this.listeners[broken ? "error" : "load"]();
    });
  }
  /** Ends all readers, also those that begin meanwhile. */
  static endAll() {
    while (FakeReader.waiting.length > 0) {
      FakeReader.waiting.shift()();
    }
  }
}
globalThis.FileReader = FakeReader;

let ids = 0;
globalThis.RED = {
  _: translator("en-US"),
  nodes: { id: () => `id-${(ids += 1)}`, getNodeLinks: () => [] },
  comms: { subscribe: () => undefined, unsubscribe: () => undefined },
};

/** The parts of jQuery that a window uses. Messages wait for `answer`; the history is empty. */
const posts = [];
let dialog = null;
globalThis.$ = Object.assign(
  () => {
    dialog = document.createElement("div");
    const frame = { addClass: () => frame, find: () => frame, text: () => frame };
    const wrapped = { append: (...children) => (dialog.append(...children), wrapped), dialog: () => wrapped, closest: () => frame };
    return wrapped;
  },
  {
    ajax: ({ method, data, timeout }) => {
      const listeners = { done: [], fail: [], always: [] };
      const request = Object.fromEntries(Object.keys(listeners).map((name) => [name, (act) => (listeners[name].push(act), request)]));
      const end = (name, value) => [...listeners[name], ...listeners.always].forEach((act) => act(value));
      if (method === "POST") {
        posts.push({ body: JSON.parse(data), timeout, answer: (failure) => (failure ? end("fail", failure) : end("done", {})) });
      } else {
        setTimeout(() => end("done", { history: [] }), 0);
      }
      return request;
    },
  },
);
const { openChat } = await import("../editor-build/editor/chat-window.mjs");

const PNG = { type: "image/png", size: 1000 };

/** Opens a window, with the acts of its user. */
async function open() {
  posts.length = 0;
  openChat({ id: `chat-${(ids += 1)}` });
  const [input, files] = dialog.querySelectorAll("input");
  const [choose, send] = dialog.querySelectorAll("button");
  let chosen = [];
  Object.defineProperty(files, "files", { get: () => chosen });
  Object.defineProperty(files, "value", {
    set: () => {
      chosen = [];
    },
  });
  // The first history clears the problem.
  await new Promise((resolve) => setTimeout(resolve, 5));
  return {
    input,
    choose,
    send,
    problem: () => dialog.querySelector(".redflow-problem").textContent,
    pick: (next) => {
      chosen = next;
      files.dispatchEvent(new window.Event("change"));
    },
    submit: () => dialog.querySelector("form").dispatchEvent(new window.Event("submit", { cancelable: true })),
  };
}

test("a message with images is sent once, however often the user presses", async () => {
  const chat = await open();
  chat.input.value = "What is it?";
  chat.pick([PNG, { type: "image/webp", size: 5 }]);
  chat.submit();
  assert.equal(chat.send.getAttribute("aria-disabled"), "true");
  chat.submit();
  FakeReader.endAll();
  chat.submit();
  FakeReader.endAll();
  assert.equal(posts.length, 1);
  const [{ body, timeout, answer }] = posts;
  assert.deepEqual(body, { message: "What is it?", id: body.id, images: ["data:image/png;base64,AAAA", "data:image/webp;base64,AAAA"] });
  assert.ok(timeout > 0, "a request without an answer ends");
  answer();
  assert.deepEqual([chat.input.value, chat.choose.textContent, chat.send.getAttribute("aria-disabled")], ["", "Images…", "false"]);
});

test("a message whose response was lost keeps its id and its images", async () => {
  const chat = await open();
  chat.input.value = "What is it?";
  chat.pick([PNG]);
  chat.submit();
  FakeReader.endAll();
  posts[0].answer({ status: 0 });
  assert.equal(chat.problem(), "Node-RED does not answer.");
  chat.submit();
  assert.deepEqual(posts[1].body, posts[0].body);
  posts[1].answer({ status: 0 });
  // Another image makes another message.
  chat.pick([{ type: "image/gif", size: 5 }]);
  chat.submit();
  FakeReader.endAll();
  assert.deepEqual(posts[2].body.images, ["data:image/gif;base64,AAAA"]);
  assert.notEqual(posts[2].body.id, posts[0].body.id);
});

test("what the user writes and chooses during a request stays", async () => {
  const chat = await open();
  chat.input.value = "What is it?";
  chat.pick([PNG]);
  chat.submit();
  chat.pick([PNG, PNG]);
  FakeReader.endAll();
  chat.input.value = "And these?";
  assert.equal(posts[0].body.images.length, 1);
  posts[0].answer();
  assert.deepEqual([chat.input.value, chat.choose.textContent], ["And these?", "Images: 2"]);
  chat.submit();
  FakeReader.endAll();
  assert.deepEqual([posts[1].body.message, posts[1].body.images.length], ["And these?", 2]);
});

test("images can be sent without a text", async () => {
  const chat = await open();
  chat.submit();
  assert.equal(posts.length, 0, "nothing to send");
  chat.input.value = " ";
  chat.pick([PNG, PNG]);
  chat.submit();
  FakeReader.endAll();
  assert.deepEqual([posts[0].body.message, posts[0].body.images.length], ["[picture 1] [picture 2]", 2]);
});

test("refuses files before it reads them, and says why", async () => {
  const tooLarge = "All images of a message may have 2.9 MiB together. Choose fewer or smaller ones.";
  const most = Math.floor(2.9 * 1024 * 1024);
  // A message may have 4 MiB. Its text is there twice: as the payload and in the item of the chat.
  const [message, typed] = [4 * 1024 * 1024, 2 * 65_536];
  assert.ok(Math.ceil(most / 3) * 4 + typed <= message, "images leave room for a text");
  const rows = [
    [[PNG, PNG, PNG, PNG], ""],
    [[PNG, PNG, PNG, PNG, PNG], "A message may have at most 4 images."],
    [[PNG, { type: "image/svg+xml", size: 5 }], "Only PNG, JPEG, GIF and WebP images can be sent."],
    [[{ type: "", size: 5 }], "Only PNG, JPEG, GIF and WebP images can be sent."],
    [[{ type: "image/jpeg", size: most }], ""],
    [[{ type: "image/jpeg", size: most + 1 }], tooLarge],
    [[PNG, { type: "image/jpeg", size: most }], tooLarge],
    [[1, 2].map(() => ({ type: "image/jpeg", size: 2 * 1024 * 1024 })), tooLarge],
  ];
  const chat = await open();
  for (const [files, problem] of rows) {
    chat.pick(files);
    assert.equal(chat.problem(), problem);
    assert.equal(chat.choose.textContent, problem === "" ? `Images: ${files.length}` : "Images…");
  }
  chat.submit();
  assert.deepEqual([FakeReader.waiting.length, posts.length], [0, 0]);
});

test("names the reason of a failure, and the user can send again", async () => {
  const chat = await open();
  chat.input.value = "x";
  const rows = [
    [{ status: 413 }, "This Node-RED refuses a message of this size. Choose fewer or smaller images, or raise apiMaxLength in its settings."],
    [{ status: 403 }, "You may not use this chat."],
    [{ status: 401 }, "You may not use this chat."],
    [{ status: 500 }, "Node-RED does not answer."],
    [{ status: 409, responseJSON: { code: "CHAT_NOT_CONNECTED", message: "Wire it." } }, "CHAT_NOT_CONNECTED: Wire it."],
  ];
  for (const [failure, problem] of rows) {
    chat.submit();
    posts.at(-1).answer(failure);
    assert.equal(chat.problem(), problem);
  }
  chat.pick([{ ...PNG, broken: true }]);
  chat.submit();
  FakeReader.endAll();
  assert.equal(chat.problem(), "An image cannot be read. Choose it again.");
  chat.pick([PNG]);
  chat.submit();
  FakeReader.endAll();
  assert.equal(posts.length, rows.length + 1);
  posts.at(-1).answer();
  await until("the problem is gone", () => chat.problem() === "");
});

test("the button has the number of the chosen images, in every language", async () => {
  const labels = [];
  // The last test, because texts without values are cached.
  for (const language of LANGUAGES) {
    globalThis.RED._ = translator(language);
    const chat = await open();
    chat.pick([PNG, PNG]);
    labels.push(chat.choose.textContent);
  }
  assert.deepEqual(labels, ["Bilder: 2", "Images: 2", "Imágenes: 2"]);
});
