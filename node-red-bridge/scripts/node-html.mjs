// Makes the html file of a node from its declaration: the dialog, the help and the call of `registerType`. What a declaration
// cannot say is written by hand in src/nodes: TYPE.form.html is the whole dialog, or the tab General of an agent, in which
// `{{NAME}}` stands for the row of a property; TYPE.definition.mjs has more parts of the definition, which replace the generated ones.

const NAMESPACE = "@redflow/node-red-bridge/redflow-editor";

/** The row of every node, before those of its properties. */
const NAME = { name: "name", kind: "line", label: { key: "name" }, icon: "tag", placeholder: "none" };

/** Kinds whose field has an id of its own, because Node-RED would save the value as text. */
const OWN_FIELD = new Set(["json", "optional_flag"]);

/** The key of a type's label in the catalogues. A dot would be a level of the catalogue. */
const paletteKey = ({ type }) => `nodes.palette.${type.replaceAll(".", "-")}`;

const prefixOf = (node) => (node.config ? "node-config-input" : "node-input");

const escapeHtml = (value) => String(value).replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** A value in a script of a page. An end tag inside it would end the script. */
const toScript = (value) => JSON.stringify(value).replaceAll("<", "\\u003c");

/** The key of a choice's text, below the key of its property's label. A dot would be a level of the catalogue, and a colon a namespace. */
const choiceKey = ({ label }, value) => `${label.key}.${value.replaceAll(/[.:]/g, "-") || "unset"}`;

const indent = (source, by) => source.replace(/^(?=.)/gm, " ".repeat(by));

const i18n = (key, attribute = "") => `data-i18n="${attribute}${NAMESPACE}:${key}"`;

/** The place of a property's row in a form that is written by hand. Texts of declarations may have braces too. */
const ROW = /^( *)\{\{(\w+)\}\}$/gm;

/** The html file of a node. */
export function pageOf(node, { form, help, definition }) {
  if (form?.replace(ROW, "").includes("{{")) {
    throw new Error(`the form of ${node.type} has a row that is not alone on its line`);
  }
  const rows = form?.replace(ROW, (_, space, name) => indent(rowOf(node, propertyOf(node, name)), space.length)) ?? dialogOf(node);
  const body = node.role === "agent" ? agentDialog(node, rows) : rows;
  return [
    `<script type="text/html" data-template-name="${node.type}">\n${indent(body.trimEnd(), 4)}\n</script>\n`,
    help.replace("{{summary}}", () => `<p>${markup(node.summary)}</p>`).replace("{{properties}}", () => indent(propertyList(node), 4).trimStart()),
    `<script type="text/javascript">\n${indent(registration(node, definition), 4)}\n</script>\n`,
  ].join("\n");
}

function propertyOf(node, name) {
  const property = [NAME, ...node.properties].find((property) => property.name === name);
  if (property === undefined) {
    throw new Error(`the form of ${node.type} has a row for ${name}, which is not declared`);
  }
  return property;
}

/** The tools of an agent have a tab of their own. */
const hasTab = ({ kind, role }) => kind === "allowed_tools" || (kind === "services" && role === "tool");

function dialogOf(node) {
  const rowsIn = (place) =>
    node.properties.filter((property) => property.place === place && !hasTab(property)).map((property) => rowOf(node, property));
  const [main, more] = [[rowOf(node, NAME), ...rowsIn("main")], rowsIn("more")];
  return [...main, ...(more.length > 0 ? [moreOf(more)] : []), ...(hasServer(node) ? [TEST] : [])].join("\n");
}

/** Whether the node is a model that a server runs, which can be tested. */
const hasServer = ({ role, properties }) => role === "model" && properties.some(({ kind }) => kind === "address");

/** Where `src/editor/model-test.mts` adds its buttons. */
const TEST = '<div class="form-row redflow-test" id="node-input-redflow-test"></div>';

/** The dialog of an agent: its tabs, with the rows in the first one. `src/editor/agent-dialog.mts` fills the others. */
function agentDialog(node, rows) {
  const offersTools = node.properties.some((property) => hasTab(property) && property.place !== "kept");
  const panels = [`<div class="redflow-agent-panel" id="node-input-redflow-panel-general">
${indent(rows.trimEnd(), 4)}
</div>`, ...(offersTools ? [toolsPanel(node)] : [])];
  return `<div class="redflow-agent-width"></div>
<div id="node-input-redflow-tabs"></div>
<div class="form-row" id="node-input-redflow-place" hidden>
    <label for="node-input-redflow-instance"><i class="fa fa-object-group"></i> <span ${i18n("agent.instance")}></span></label>
    <select id="node-input-redflow-instance"></select>
</div>
${panels.join("\n")}
<div class="redflow-agent-panel" id="node-input-redflow-panel-runs" hidden>
    <div id="node-input-redflow-runs"></div>
</div>
<div class="redflow-agent-panel" id="node-input-redflow-panel-errors" hidden>
    <div id="node-input-redflow-errors"></div>
</div>`;
}

/** The tab Tools. An agent for one thing without tools has none. */
function toolsPanel(node) {
  const intro = node.properties.some(({ kind }) => kind === "allowed_tools") ? "intro" : "introBound";
  return `<div class="redflow-agent-panel" id="node-input-redflow-panel-tools" hidden>
    <p class="redflow-hint" ${i18n(`agent.tools.${intro}`)}></p>
    <div id="node-input-redflow-toolList"></div>
    <div class="redflow-problem" id="node-input-redflow-toolProblem" role="status"></div>
</div>`;
}

function moreOf(rows) {
  return `<details class="redflow-more">\n    <summary ${i18n("nodes.more")}></summary>\n${indent(rows.join("\n"), 4)}\n</details>`;
}

/** The row of a property: its label, its field and its note. */
function rowOf(node, property) {
  // A list of services is no field.
  const own = property.kind === "services" ? "redflow-list-" : OWN_FIELD.has(property.kind) ? "redflow-" : "";
  const id = `${prefixOf(node)}-${own}${property.name}`;
  const isAbove = property.kind === "json" || property.kind === "block";
  const icon = property.icon ? `<i class="fa fa-${property.icon}"></i> ` : "";
  const label = `<label for="${id}"${isAbove ? ' class="redflow-above"' : ""}>${icon}<span ${i18n(`nodes.field.${property.label.key}`)}></span></label>`;
  const note = property.note ? [`<div class="redflow-note" ${i18n(`nodes.hint.${property.note.key}`)}></div>`] : [];
  return ['<div class="form-row">', indent([label, fieldOf(node, property, id), ...note].join("\n"), 4), "</div>"].join("\n");
}

function fieldOf(node, property, id) {
  const { kind } = property;
  switch (kind) {
    case "flag":
      return `<input type="checkbox" id="${id}">`;
    case "secret":
      return `<input type="password" id="${id}"${placeholderOf(node, property)}>`;
    case "config_node":
      // Node-RED replaces it with a select of this width.
      return `<input type="text" id="${id}" style="width: calc(100% - 150px)">`;
    case "service":
      return `<select id="${id}"></select>`;
    case "services":
      return `<div class="redflow-services" id="${id}"></div>`;
    case "choice":
      return selectOf(id, property.choices.map(({ value }) => [value, choiceKey(property, value)]));
    case "optional_flag":
      return selectOf(id, [["", property.unset.key], ["true", "yes"], ["false", "no"]]);
    case "json": {
      const height = property.height ? ` style="height: ${property.height}px;"` : "";
      return `<textarea class="redflow-json" id="${id}"${height} spellcheck="false"></textarea>`;
    }
    case "block":
      return `<textarea id="${id}" class="redflow-long" rows="3"${placeholderOf(node, property)}></textarea>`;
    default:
      return `<input type="text" id="${id}"${placeholderOf(node, property)}>`;
  }
}

function selectOf(id, options) {
  const rows = options.map(([value, key]) => `    <option value="${escapeHtml(value)}" ${i18n(`nodes.option.${key}`)}></option>`);
  return [`<select id="${id}">`, ...rows, "</select>"].join("\n");
}

function placeholderOf(node, property) {
  const { example, hint } = property.placeholder;
  const key = property === NAME ? "nodes.field.name" : hint && `nodes.hint.${hint.key}`;
  const fixed = example ?? (property.kind === "tool_name" ? node.tool : undefined);
  return key ? ` ${i18n(key, "[placeholder]")}` : fixed ? ` placeholder="${escapeHtml(fixed)}"` : "";
}

/** The texts of a declaration as html: `code`, *label* and **type** are marked as in Markdown. */
function markup(source) {
  return source
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith("`") ? `<code>${escapeHtml(part.slice(1, -1)).replaceAll("&quot;", '"')}</code>` : emphasis(part)))
    .join("");
}

function emphasis(source) {
  return source.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replace(/\*\*(.+?)\*\*/g, "<b>$1</b>").replace(/\*(.+?)\*/g, "<i>$1</i>");
}

/** The properties that the help explains. */
export const explained = (node) => node.properties.filter(({ place }) => place !== "kept");

function propertyList(node) {
  const rows = explained(node).map(({ label, help }) => `    <dt>${emphasis(label.text)}</dt>\n    <dd>${markup(help)}</dd>`);
  return ['<dl class="message-properties">', ...rows, "</dl>"].join("\n");
}

/** A function of the definition. Node-RED shows the sentences of a validator only if it has two parameters. */
const method = (body, parameters = "") => `function (${parameters}) {\n${indent([body].flat().join("\n"), 4)}\n}`;

const textOf = (key) => `RedflowEditor.text(${toScript(key)})`;

const objectOf = (entries) => `{\n${entries.map(([name, value]) => indent(`${name}: ${value},`, 4)).join("\n")}\n}`;

function registration(node, definition = "") {
  const own = definition.replace(/^[\s\S]*?export default \{\n/, "").replace(/\};\s*$/, "").trimEnd();
  if (own !== "" && !/^ {4}\w+:/.test(own)) {
    throw new Error(`the definition of ${node.type} must have parts such as \`label: function () {…}\``);
  }
  const replaced = new Set([...own.matchAll(/^ {4}(\w+):/gm)].map(([, name]) => name));
  const parts = definitionOf(node).filter(([name]) => !replaced.has(name));
  const lines = [...parts.map(([name, value]) => `    ${name}: ${indent(value, 4).trimStart()},`), ...(own === "" ? [] : [own])];
  return `RED.nodes.registerType("${node.type}", {\n${lines.join("\n")}\n});`;
}

function definitionOf(node) {
  const key = paletteKey(node);
  const names = ["name", ...(node.namedBy ? [node.namedBy] : [])].map((name) => `this.${name}`);
  const secrets = node.properties.filter(({ kind }) => kind === "secret");
  return [
    ["category", JSON.stringify(node.config ? "config" : "Redflow")],
    ...(node.config ? [] : [["color", JSON.stringify(node.color)]]),
    ["paletteLabel", method(`return ${textOf(key)};`)],
    ...(node.config ? [] : [["icon", JSON.stringify(node.icon)]]),
    ["defaults", defaultsOf(node)],
    ...(secrets.length > 0 ? [["credentials", objectOf(secrets.map((secret) => [secret.name, credentialOf(secret)]))]] : []),
    ...(node.config ? [] : portsOf(node)),
    ["label", method(`return RedflowEditor.label([${names.join(", ")}], "${key}");`)],
    ...(node.config ? [] : [["labelStyle", method('return this.name ? "node_label_italic" : "";')]]),
    ["oneditprepare", method(prepare(node))],
    ["oneditsave", method(save(node))],
    ...(node.role === "agent" ? ["oneditcancel", "oneditdelete"].map((name) => [name, method("RedflowEditor.closeAgent(this);")]) : []),
  ];
}

function defaultsOf(node) {
  const rows = node.properties.filter(({ kind }) => kind !== "secret").map((property) => [property.name, defaultOf(property)]);
  // Not a property of the flow: shows the checker's problems of this node and its wires.
  const wires = [["redflowWires", objectOf([["validate", method("return RedflowEditor.verdict(this);", "v, opt")]])]];
  return objectOf([["name", '{ value: "" }'], ...rows, ...(node.config ? [] : wires)]);
}

function defaultOf(property) {
  const { kind, of } = property;
  const value = property.default === null ? "undefined" : toScript(property.default);
  const rule = ruleOf(property);
  return objectOf([
    ["value", value],
    ...(kind === "config_node" ? [["type", JSON.stringify(of)]] : []),
    ...(rule ? [["validate", method(rule, "v, opt")]] : []),
  ]);
}

function credentialOf(secret) {
  const rule = ruleOf(secret);
  return objectOf([["type", '"password"'], ...(rule ? [["validate", method(rule, "v, opt")]] : [])]);
}

/** Rules that know their property. */
const FIXED_RULES = {
  node_ids: "boundVerdict",
  services: "boundVerdict",
  allowed_tools: "allowedVerdict",
  stop_conditions: "stopsVerdict",
};

/** The rules of `src/editor/rules.mts` and their options. */
const RULES = {
  line: ({ max }) => ["line", { max }],
  block: () => ["line", {}],
  service: () => ["line", {}],
  whole: ({ min, max, dialog }) => ["number", { min: dialog?.[0] ?? min, max: dialog?.[1] ?? max, whole: true }],
  decimal: ({ min, max }) => ["number", { min, max }],
  flag: () => ["flag", {}],
  optional_flag: () => ["flag", {}],
  choice: ({ choices }) => ["choice", { of: choices.map(({ value }) => value).filter((value) => value !== "") }],
  json: ({ shape }) => [shape === "parameters" ? "object" : shape, {}],
  texts: ({ most }) => ["stops", { most }],
  address: ({ example }) => ["address", { example }],
  redis_address: () => ["redisAddress", {}],
  host_ports: ({ most }) => ["hostPorts", { most }],
  day: () => ["day", {}],
  tool_name: () => ["toolName", {}],
  secret: ({ rule }) => [rule === "bytes" ? "secretBytes" : "secret", {}],
};

/** The lines of a validator; undefined if every value is valid. */
function ruleOf(property) {
  const { kind, presence, label } = property;
  if (kind === "config_node") {
    return property.of === "redflow-runtime" ? "return RedflowEditor.runtimeVerdict(v);" : `return RedflowEditor.keyVerdict(v, "${property.of}");`;
  }
  if (FIXED_RULES[kind] || (kind === "secret" && property.rule === "token")) {
    return `return RedflowEditor.${FIXED_RULES[kind] ?? "tokenVerdict"}(v);`;
  }
  if (kind === "other" || (kind === "secret" && property.rule === "any")) {
    return undefined;
  }
  const [rule, limits] = RULES[kind](property);
  const orNodeName = property.orNodeName === true;
  const options = { ...limits, ...(presence === "optional" && !orNodeName ? { optional: true } : {}) };
  const parts = Object.entries(options).flatMap(([name, value]) => (value === null || value === undefined ? [] : [`${name}: ${toScript(value)}`]));
  const below = property.below ? [`below: { value: this.${property.below}, name: ${textOf(`nodes.field.${property.below}`)} }`] : [];
  const value = orNodeName ? "RedflowEditor.isBlank(v) ? this.name : v" : "v";
  const call = `RedflowEditor.${rule}(${value}, { ${["name: name", ...parts, ...below].join(", ")} })`;
  return [`var name = ${textOf(`nodes.field.${label.key}`)};`, `return ${presence === "not_blank" ? "v === undefined || " : ""}${call};`];
}

function portsOf({ type, input, outputs }) {
  if (!input) {
    throw new Error(`${type} has no input: give it a form of its own`);
  }
  const keys = outputs.map(({ key }) => `nodes.port.${key}`);
  const labels = keys.length === 1 ? [textOf(keys[0])] : [`RedflowEditor.text(${JSON.stringify(keys)}[port])`];
  return [
    ["inputs", "1"],
    ["outputs", String(keys.length)],
    ["inputLabels", method(`return ${textOf(`nodes.port.${input.key}`)};`)],
    ...(keys.length === 0 ? [] : [["outputLabels", method(`return ${labels[0]};`, keys.length === 1 ? "" : "port")]]),
  ];
}

/** The names of the properties of some kinds that have a field. */
const namesOf = (node, ...kinds) =>
  node.properties.filter(({ kind, place }) => kinds.includes(kind) && place !== "kept").map(({ name }) => name);

function prepare(node) {
  if (node.config && namesOf(node, "optional_flag", "json").length > 0) {
    throw new Error(`${node.type} is a config node: its dialog cannot have a flag without a default or a JSON field yet`);
  }
  const choices = namesOf(node, "optional_flag");
  const services = namesOf(node, "service").map((name) => [name, propertyOf(node, name).role]);
  const secret = node.properties.find(({ variable }) => variable);
  const key = secret && [secret.variable.name, ...(secret.variable.unless ? [secret.variable.unless] : [])];
  return [
    ...(node.role === "agent" ? ["RedflowEditor.openAgent(this);"] : []),
    ...(node.role !== "agent" && services.length > 0 ? [`RedflowEditor.prepareServices(this, ${toScript(Object.fromEntries(services))});`] : []),
    ...(choices.length > 0 ? [`RedflowEditor.prepareChoices(this, ${JSON.stringify(choices)});`] : []),
    ...namesOf(node, "json").map((name) => `RedflowEditor.prepareJson(this, "${name}");`),
    ...namesOf(node, "json").filter((name) => propertyOf(node, name).shape === "parameters").map((name) => `RedflowEditor.prepareParameters("${name}");`),
    ...(key ? [`RedflowEditor.noteKey(${key.map((part) => JSON.stringify(part)).join(", ")});`] : []),
    ...(hasServer(node) ? ["RedflowEditor.prepareModelTest(this);"] : []),
    `RedflowEditor.prepareFields(this${node.config ? `, "${prefixOf(node)}"` : ""});`,
  ];
}

function save(node) {
  const [numbers, choices] = [namesOf(node, "whole", "decimal"), namesOf(node, "optional_flag")];
  const prefix = node.config ? `, "${prefixOf(node)}"` : "";
  return [
    ...(numbers.length > 0 ? [`RedflowEditor.saveNumbers(this, ${JSON.stringify(numbers)}${prefix});`] : []),
    ...(choices.length > 0 ? [`RedflowEditor.saveChoices(this, ${JSON.stringify(choices)});`] : []),
    ...namesOf(node, "json").map((name) => `RedflowEditor.saveJson(this, "${name}");`),
    ...(node.role === "agent" ? ["RedflowEditor.saveAgent(this);"] : []),
    `RedflowEditor.keepUntouched(this${prefix});`,
  ];
}

/**
 * The function that registers a type of each role. A service and a config node do nothing in Node-RED; other roles need a script
 * of their own.
 */
const REGISTER = { agent: "registerAgent", model: "registerService", memory: "registerService", tool: "registerService" };

/** The script of an agent, a service or a config node; undefined for other roles. */
export function scriptOf({ type, role, config, properties }) {
  const register = config ? "registerService" : REGISTER[role];
  const secrets = properties.filter(({ kind }) => kind === "secret").map(({ name }) => name);
  const values = [type, ...(role === "agent" ? [] : [secrets])].map((value) => JSON.stringify(value)).join(", ");
  const module = role === "agent" ? "agent-node" : "service";
  return register && `"use strict";\nconst { ${register} } = require("../${module}");\nmodule.exports = (RED) => ${register}(RED, ${values});\n`;
}

/** The English texts of the declarations, by key. */
export function englishTexts(nodes) {
  const texts = {};
  const add = (path, text) => {
    const [last, ...parents] = path.split(".").reverse();
    const level = parents.reverse().reduce((at, part) => (at[part] ??= {}), texts);
    if (level[last] !== undefined && level[last] !== text) {
      throw new Error(`two declarations have other texts for ${path}: ${level[last]} and ${text}`);
    }
    level[last] = text;
  };
  for (const node of nodes) {
    add(paletteKey(node).replace(/^nodes\./, ""), node.label);
    [node.input, ...node.outputs].filter(Boolean).forEach(({ key, text }) => add(`port.${key}`, text));
    for (const property of node.properties) {
      const { label, note, placeholder, unset, choices = [] } = property;
      [label].filter(({ text }) => text !== "").forEach(({ key, text }) => add(`field.${key}`, text));
      [note, placeholder.hint].filter(Boolean).forEach(({ key, text }) => add(`hint.${key}`, text));
      [unset].filter(Boolean).forEach(({ key, text }) => add(`option.${key}`, text));
      choices.forEach(({ value, text }) => add(`option.${choiceKey(property, value)}`, text));
    }
  }
  return texts;
}
