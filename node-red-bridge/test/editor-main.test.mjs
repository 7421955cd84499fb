// The start of the editor plugin: each part once, and independent of the others.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import vm from "node:vm";

const page = readFileSync(new URL("../dist/editor/redflow-editor.html", import.meta.url), "utf8");
const [, script] = /<script type="text\/javascript">([\s\S]*?)<\/script>/.exec(page);

const anything = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === Symbol.iterator ? [][name] : anything),
  apply: () => anything,
  construct: () => anything,
});
const within = (own) => new Proxy(own, { get: (_, name) => own[name] ?? anything });

/** A fake of Node-RED's editor that records registrations and rejects a second one. */
function editor(refuse = () => false) {
  const registered = [];
  const register = (kind) => (name) => {
    if (registered.includes(`${kind} ${name}`) || refuse(kind)) {
      throw new Error(`${kind} ${name} already registered`);
    }
    registered.push(`${kind} ${name}`);
  };
  const RED = within({
    plugins: { registerPlugin: (_, definition) => definition.onadd() },
    hooks: { add: register("hook") },
    view: within({ annotations: { register: register("annotation") } }),
    sidebar: { addTab: ({ id }) => register("tab")(id) },
    comms: { subscribe: (topic) => registered.push(`topic ${topic}`) },
  });
  const errors = [];
  const others = { document: anything, IntersectionObserver: anything, URL, queueMicrotask: () => 0, setTimeout: () => 0 };
  const context = vm.createContext({ RED, $: anything, window: {}, console: { error: (...words) => errors.push(words) }, ...others });
  return { registered, errors, run: () => vm.runInContext(script, context) };
}

const ALL = ["hook viewAddPort.redflow", "hook viewRedrawNode.redflow", "annotation redflow-checks", "topic redflow/runtimes", "tab redflow"];

test("starts nothing twice when the module is added again", () => {
  const { registered, errors, run } = editor();
  run();
  const first = [...registered];
  ALL.forEach((part) => assert.ok(first.includes(part), part));
  run();
  assert.deepEqual([registered, errors], [first, []]);
});

test("a part that fails does not stop the others", () => {
  for (const broken of ["hook", "annotation", "tab"]) {
    const { registered, errors, run } = editor((kind) => kind === broken);
    run();
    ALL.filter((part) => !part.startsWith(broken)).forEach((part) => assert.ok(registered.includes(part), `${part} without ${broken}`));
    assert.equal(errors.length, 1, broken);
  }
});
