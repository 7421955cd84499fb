// How the editor's part begins: all of it, once, and each part by itself.

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

/** Node-RED's editor as far as parts are made known to it. It knows each by its name, and takes none twice. */
function editor(refuse = () => false) {
  const known = [];
  const take = (what) => (name) => {
    if (known.includes(`${what} ${name}`) || refuse(what)) {
      throw new Error(`${what} ${name} already registered`);
    }
    known.push(`${what} ${name}`);
  };
  const RED = within({
    plugins: { registerPlugin: (_, definition) => definition.onadd() },
    hooks: { add: take("hook") },
    view: within({ annotations: { register: take("annotation") } }),
    sidebar: { addTab: ({ id }) => take("tab")(id) },
    comms: { subscribe: (topic) => known.push(`topic ${topic}`) },
  });
  const said = [];
  const others = { document: anything, IntersectionObserver: anything, URL, queueMicrotask: () => 0, setTimeout: () => 0 };
  const context = vm.createContext({ RED, $: anything, window: {}, console: { error: (...words) => said.push(words) }, ...others });
  return { known, said, run: () => vm.runInContext(script, context) };
}

const ALL = ["hook viewAddPort.redflow", "hook viewRedrawNode.redflow", "annotation redflow-checks", "topic redflow/runtimes", "tab redflow"];

test("a module that is added again while the editor is open starts nothing twice", () => {
  const { known, said, run } = editor();
  run();
  const first = [...known];
  ALL.forEach((part) => assert.ok(first.includes(part), part));
  run();
  assert.deepEqual([known, said], [first, []]);
});

test("a part that cannot begin keeps no other from it", () => {
  for (const broken of ["hook", "annotation", "tab"]) {
    const { known, said, run } = editor((what) => what === broken);
    run();
    ALL.filter((part) => !part.startsWith(broken)).forEach((part) => assert.ok(known.includes(part), `${part} without ${broken}`));
    assert.equal(said.length, 1, broken);
  }
});
