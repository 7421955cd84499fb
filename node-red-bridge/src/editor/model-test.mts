// The buttons of a model's dialog: one tests the model with what the dialog has now, one lists the models of the server. Only the
// sidecar of the model's own agents is asked. Stored keys stay in Node-RED: the request names the deployed node that has the key.

import type { ModelList, ModelTest } from "@redflow/bindings";
import type { ModelForm } from "../admin-api.js";
import { RequestError, adminApi } from "./admin-client.mjs";
import { runtimes, runtimesOfService } from "./agent-runtimes.mjs";
import { MAX_ROW_CHARS, button, cut, element, untrusted } from "./dom.mjs";
import { typedValue } from "./fields.mjs";
import { formatDecimal } from "./formats.mjs";
import { STORED_SECRET, isBlank } from "./rules.mjs";
import { text } from "./text.mjs";

/** What the dialog of a model has now. */
export function modelForm(node: EditorNode, valueOf: (name: string) => unknown): ModelForm {
  const { defaults, credentials: secrets = {} } = node._def;
  const config = Object.fromEntries(
    Object.keys(defaults).filter((name) => name !== "redflowWires").map((name) => [name, valueOf(name)] as const).filter(([, value]) => value !== undefined),
  );
  const textOf = (value: unknown): string => (typeof value === "string" ? value.trim() : "");
  const keys = Object.keys(secrets).map((name) => [name, textOf(valueOf(name))] as const);
  const credentials = Object.fromEntries(keys.filter(([, key]) => key !== "" && key !== STORED_SECRET));
  const keyNode = config["keyNode"];
  const isStored = keys.some(([, key]) => key === STORED_SECRET);
  const isShared = !isStored && Object.keys(credentials).length === 0 && typeof keyNode === "string" && !isBlank(keyNode) && keyNode !== "_ADD_";
  return { type: node.type, config, credentials, ...(isStored ? { node: node.id } : isShared ? { node: keyNode } : {}) };
}

/** Adds the buttons. For `oneditprepare`, after the fields are prepared. */
export function prepareModelTest(node: EditorNode): void {
  const host = document.getElementById("node-input-redflow-test");
  if (host === null) {
    return;
  }
  const answer = element("div", { class: "redflow-test-answer", attributes: { role: "status" } });
  let isBusy = false;
  const setBusy = (busy: boolean): void => {
    isBusy = busy;
    buttons.forEach((one) => one.setAttribute("aria-disabled", String(busy)));
  };
  const ask = async <T,>(send: (runtime: string, form: ModelForm) => Promise<T>, show: (response: T) => Node[], failure: Failure): Promise<void> => {
    // A disabled button would lose the focus.
    if (isBusy) {
      return;
    }
    setBusy(true);
    answer.replaceChildren(text("fields.test.busy"));
    try {
      const own = runtimesOfService(node);
      const runtime = await connectedRuntime(own);
      if (runtime === undefined) {
        const isUnclear = own.length === 0 && runtimes().length > 0;
        answer.replaceChildren(text(`fields.test.${isUnclear ? "whichRuntime" : "noRuntime"}`));
      } else {
        answer.replaceChildren(...show(await send(runtime, modelForm(node, (name) => typedValue(node, name)))));
      }
    } catch (error) {
      answer.replaceChildren(...describeFailure(error, failure));
    } finally {
      setBusy(false);
    }
  };
  const test = button(text("fields.test.test"), () => void ask(adminApi.testModel, describeTest, "failed"));
  const field = document.getElementById("node-input-model") as HTMLInputElement | null;
  const list = button(text("fields.test.list"), () => void ask(adminApi.listModels, (found) => describeList(found, field), "listFailed"));
  const buttons = field === null ? [test] : [test, list];
  host.replaceChildren(...buttons, answer);
}

async function connectedRuntime(among: string[]): Promise<string | undefined> {
  const { runtimes: deployed } = await adminApi.runtimes();
  return deployed.find(({ id, state }) => among.includes(id) && state.is === "connected")?.id;
}

/** The sentence before the code of a failure. */
type Failure = "failed" | "listFailed";

function describeFailure(error: unknown, failure: Failure): Node[] {
  const { status, problem } = error instanceof RequestError ? error : { status: 0, problem: { code: "", message: "" } };
  if (problem.message === "") {
    const key = status === 401 || status === 403 ? "forbidden" : "noNodeRed";
    return [element("span", { class: "redflow-trouble", text: text(`fields.test.${key}`) })];
  }
  return failed(problem.code, problem.message, failure);
}

function failed(code: string, message: string, failure: Failure = "failed"): Node[] {
  const head = element("strong", { class: "redflow-trouble", text: text(`fields.test.${failure}`) });
  return [element("div", {}, head, element("span", { text: " " }), element("code", { text: cut(code, MAX_ROW_CHARS) })), untrusted("div", message)];
}

/** What came of a test, in sentences. */
export function describeTest(test: ModelTest): Node[] {
  const { ok, error, durationMs, usage, answer, sent } = test;
  const rows = testRows(test).map(([key, value]) =>
    element("li", {}, element("span", { class: "redflow-hint", text: `${text(`fields.test.row.${key}`)}: ` }), untrusted("span", value, { maxChars: MAX_ROW_CHARS })),
  );
  const head = ok
    ? [element("strong", { text: text("fields.test.ok", { seconds: formatDecimal(durationMs / 1000, 1) }) })]
    : failed(error?.code ?? "", error?.message ?? "");
  const details = answer === undefined ? [] : [element("details", {}, element("summary", { text: text("fields.test.answer") }), untrusted("pre", answer, { class: "redflow-prompt" }))];
  const isUseful = usage !== undefined || sent !== undefined;
  return [...head, ...(isUseful ? [element("ul", { class: "redflow-test-rows" }, ...rows)] : []), ...details];
}

/** The facts of a test that are known, each with the key of its label. */
export function testRows({ sent, server, model, answeredBy, usage, tokensPerSecond, schema, contextWindow }: ModelTest): [string, string][] {
  const tokens = usage === undefined ? undefined : text("fields.test.tokens", { read: usage.inputTokens ?? 0, written: usage.outputTokens ?? 0 });
  const rows: [string, string | undefined][] = [
    ["server", server],
    ["address", sent?.address],
    ["interface", describeInterface(sent)],
    ["refused", sent?.refused?.join(", ")],
    ["model", answeredBy ?? model],
    ["tokens", tokens],
    ["speed", tokensPerSecond === undefined ? undefined : text("fields.test.perSecond", { n: formatDecimal(tokensPerSecond, 1) })],
    ["schema", schema === undefined ? undefined : text(`fields.test.schema.${schema}`)],
    ["window", contextWindow === undefined ? undefined : text("fields.test.windowTokens", { n: contextWindow })],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== undefined && row[1] !== "");
}

/** The interface of OpenAI that requests go to, and another one for requests with tools. */
function describeInterface(sent: ModelTest["sent"]): string | undefined {
  const withTools = sent?.interfaceForTools;
  return withTools === undefined ? sent?.interface : text("fields.test.withTools", { name: sent?.interface ?? "", tools: withTools });
}

/** A list to choose from, which fills the field of the model and its suggestions. The sidecar limits its length. */
function describeList({ models }: ModelList, field: HTMLInputElement | null): Node[] {
  if (models.length === 0 || field === null) {
    return [element("span", { text: text("fields.test.noModels") })];
  }
  suggest(field, models.map(({ id }) => id));
  const option = (value: string, label: string): HTMLOptionElement => {
    const created = untrusted("option", label, { maxChars: MAX_ROW_CHARS });
    created.value = value;
    return created;
  };
  const select = element("select", { attributes: { id: "node-input-redflow-models" } }, option("", text("fields.test.choose", { n: models.length })));
  select.append(
    ...models.map(({ id, contextWindow }) => option(id, contextWindow === undefined ? id : `${id} (${text("fields.test.windowTokens", { n: contextWindow })})`)),
  );
  select.value = models.some(({ id }) => id === field.value) ? field.value : "";
  select.addEventListener("change", () => {
    if (select.value !== "") {
      $(field).val(select.value).trigger("change");
    }
  });
  const label = element("label", { attributes: { for: select.id }, text: text("fields.test.models") });
  return [label, select];
}

/** Offers names while a user types in a field. A later list replaces the first one. */
function suggest(field: HTMLInputElement, names: string[]): void {
  const id = `${field.id}-names`;
  document.getElementById(id)?.remove();
  const list = element("datalist", { attributes: { id } });
  list.append(
    ...names.map((name) => {
      const option = element("option");
      option.value = name;
      return option;
    }),
  );
  field.after(list);
  field.setAttribute("list", id);
}
