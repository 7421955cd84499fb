// The log of a chat window: what is drawn again, when it scrolls, and when the history is requested.

import assert from "node:assert/strict";
import test from "node:test";

/** A fake element that counts how often its text is set. */
class FakeElement {
  children = [];
  attributes = {};
  classList = { add: () => undefined };
  parent = null;
  writes = 0;
  #text = "";
  set textContent(text) {
    this.writes += 1;
    this.#text = text;
  }
  get textContent() {
    return this.#text + this.children.map((child) => child.textContent).join("|");
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  append(...children) {
    children.forEach((child) => this.insertBefore(child, null));
  }
  insertBefore(child, next) {
    child.remove();
    child.parent = this;
    this.children.splice(next === null ? this.children.length : this.children.indexOf(next), 0, child);
  }
  remove() {
    this.parent?.children.splice(this.parent.children.indexOf(this), 1);
    this.parent = null;
  }
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  get nextElementSibling() {
    return this.parent?.children[this.parent.children.indexOf(this) + 1] ?? null;
  }
}
Object.assign(globalThis, { document: { createElement: () => new FakeElement() } });
globalThis.RED = { _: (key) => key };
const { ChatLog, oneAtATime } = await import("../editor-build/editor/chat-log.mjs");

const item = (id, content, type = "agent") => ({ id, type, content });

test("draws only the items that have changed", () => {
  const log = new ChatLog();
  log.show([item("q", "Hello?", "user"), item("r-live", "He")]);
  const [question, answer] = log.root.children;
  const content = ({ children }) => children[1];
  const before = [content(question).writes, content(answer).writes];
  log.show([item("q", "Hello?", "user"), item("r-live", "Hello <b>")]);
  assert.deepEqual(log.root.children, [question, answer]);
  assert.deepEqual([content(question).writes, content(answer).writes], [before[0], before[1] + 1]);
  assert.equal(content(answer).textContent, "Hello <b>");
  log.show([item("r-1", "Hello"), item("r-2", "x".repeat(30_000))]);
  assert.deepEqual(log.root.children.map((child) => content(child).textContent.length), [5, 20_001]);
});

test("scrolls to a new item only if the user reads the end", () => {
  const log = new ChatLog();
  for (const [scrollTop, expected] of [[300, 400], [285, 400], [100, 100]]) {
    Object.assign(log.root, { scrollHeight: 400, clientHeight: 100, scrollTop });
    log.show([item("r", `at ${scrollTop}`)]);
    assert.equal(log.root.scrollTop, expected, String(scrollTop));
  }
});

test("sends one request at a time, and one more if something has changed meanwhile", () => {
  const open = [];
  const refresh = oneAtATime((done) => open.push(done));
  for (let at = 0; at < 9; at += 1) {
    refresh();
  }
  assert.equal(open.length, 1);
  open[0]();
  assert.equal(open.length, 2);
  open[1]();
  assert.equal(open.length, 2);
  refresh();
  assert.equal(open.length, 3);
});
