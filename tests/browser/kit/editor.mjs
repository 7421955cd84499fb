// Node-RED's editor in a page, and a person's hands in it: what is done by mouse and keyboard is done so here.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { PATIENCE_MS, eventually } from "./wait.mjs";

const PICTURES = fileURLToPath(new URL("../dist/editor/", import.meta.url));

/** Longer than a flow of two hundred agents takes to load. */
const LOAD_MS = 3 * PATIENCE_MS;

/** A person's browser, with its language. What it has loaded once it keeps. */
export const person = (browser, locale = "en-US") => browser.newContext({ viewport: { width: 1400, height: 850 }, locale });

/** Opens the editor of a Node-RED in a person's browser. */
export async function editor(context, nodeRed) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const opened = new Editor(page, nodeRed);
  await opened.load();
  return opened;
}

export class Editor {
  /** What the page threw, and dialogs that it opened: none are ours. */
  errors = [];

  constructor(page, nodeRed) {
    this.page = page;
    this.nodeRed = nodeRed;
    page.on("pageerror", (error) => this.errors.push(String(error.stack ?? error)));
    page.on("dialog", async (dialog) => {
      if (dialog.type() !== "beforeunload") {
        this.errors.push(`a dialog: ${dialog.message()}`);
      }
      await dialog.accept();
    });
  }

  /** Loads it, and waits until the flows are there. */
  async load() {
    await this.page.goto(this.nodeRed.url);
    const loaded = () => window.RED?.nodes?.version?.() && document.querySelector("#red-ui-header-button-deploy")?.checkVisibility();
    await this.page.waitForFunction(loaded, undefined, { timeout: LOAD_MS });
  }

  /** Closes it. The next one finds nothing of what it has noted for itself. */
  async close() {
    await this.page.evaluate(() => localStorage.clear());
    await this.page.close();
  }

  /** Holds that the page threw nothing, and that nobody's text became a part of it. */
  holds() {
    assert.deepEqual(this.errors, [], "the page threw");
  }

  /** Keeps how it looks. */
  async picture(name) {
    mkdirSync(PICTURES, { recursive: true });
    await this.page.screenshot({ path: join(PICTURES, `${this.nodeRed.line}-${name}.png`) });
  }

  /** A node on the canvas. */
  node(id) {
    return this.page.locator(`g.red-ui-flow-node-group[id="${id}"]`);
  }

  /** The red triangle of a node. */
  triangle(id) {
    return this.node(id).locator(".red-ui-flow-node-error");
  }

  /** What the checks have put on an agent. */
  badge(id) {
    return this.node(id).locator(".redflow-badge > g");
  }

  /** Waits until the flow is checked, or, with `false`, until it is known that it is not. */
  async checked(is = true) {
    const wanted = is ? "checked" : "not_checked";
    await this.until(`the flow is ${wanted}`, (wanted) => window.RedflowEditor.state().is === wanted, wanted);
  }

  port(id, output) {
    return this.node(id).locator(".red-ui-flow-port-output .red-ui-flow-port").nth(output);
  }

  input(id) {
    return this.node(id).locator(".red-ui-flow-port-input .red-ui-flow-port");
  }

  /** Draws a wire with the mouse. */
  async wire(from, output, to) {
    const middle = async (place) => {
      const box = await place.boundingBox();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [begin, end] = [await middle(this.port(from, output)), await middle(this.input(to))];
    await this.page.mouse.move(...begin);
    await this.page.mouse.down();
    await this.page.mouse.move((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2, { steps: 4 });
    await this.page.mouse.move(...end, { steps: 4 });
    await this.page.mouse.up();
    await this.page.waitForFunction(
      ([from, output, to]) =>
        RED.nodes.getNodeLinks(from, 0).some((link) => link.sourcePort === output && link.target.id === to),
      [from, output, to],
    );
  }

  /** Opens a node's dialog. */
  async open(id) {
    await this.node(id).locator(".red-ui-flow-node").dblclick();
    await this.settled();
    return this.tray;
  }

  /** Opens a node's dialog where the node is larger than the canvas. */
  async openById(id) {
    await this.page.evaluate((id) => RED.editor.edit(RED.nodes.node(id)), id);
    await this.settled();
    return this.tray;
  }

  /** Waits until a dialog has come in: Node-RED gives it the focus last. */
  settled() {
    return this.page.waitForFunction(() => document.activeElement?.closest(".red-ui-tray"));
  }

  /** The dialog on top. */
  get tray() {
    return this.page.locator(".red-ui-tray").last();
  }

  async done() {
    await this.page.locator("#node-dialog-ok").last().click();
    await this.trayGone();
  }

  async cancel() {
    await this.page.locator("#node-dialog-cancel").last().click();
    await this.trayGone();
  }

  trayGone() {
    return this.page.waitForFunction(() => !document.querySelector(".red-ui-tray"));
  }

  /** Presses the button of an inject node. */
  async press(id) {
    await this.node(id).locator(".red-ui-flow-node-button-button").click();
  }

  /** Presses Deploy, and waits until that is done. */
  async deploy() {
    await this.page.locator("#red-ui-header-button-deploy").click();
    await this.deployed();
  }

  deployed() {
    return this.page.waitForFunction(() => !RED.nodes.dirty());
  }

  /** Opens the sidebar of ours, by its keys. */
  async sidebar() {
    await this.page.evaluate(() => RED.view.focus());
    await this.page.keyboard.press("Control+g");
    await this.page.keyboard.press("r");
    const sidebar = this.page.locator(".redflow-sidebar");
    await sidebar.waitFor();
    return sidebar;
  }

  /** What Node-RED tells and asks at the top. */
  get notices() {
    return this.page.locator("#red-ui-notifications .red-ui-notification");
  }

  /** Types into a field, in the place of what is there. */
  async type(field, text) {
    await field.fill("");
    await field.press("End");
    await field.pressSequentially(text);
  }

  /** Selects a node. */
  async select(id) {
    await this.node(id).locator("rect.red-ui-flow-node").click();
    await this.until(`${id} is selected`, (id) => RED.view.selection().nodes?.some((node) => node.id === id), id);
  }

  async undo() {
    await this.page.evaluate(() => RED.view.focus());
    await this.page.keyboard.press("Control+z");
  }

  async redo() {
    await this.page.evaluate(() => RED.view.focus());
    await this.page.keyboard.press("Control+y");
  }

  /** Imports nodes through the dialog, onto the flow that is shown. */
  async import(nodes) {
    await this.page.evaluate(() => RED.view.focus());
    await this.page.keyboard.press("Control+i");
    await this.page.locator("#red-ui-clipboard-dialog-import-text").fill(JSON.stringify(nodes));
    // Node-RED looks at it when a key was pressed.
    await this.page.keyboard.press("End");
    await this.page.locator("#red-ui-clipboard-dialog-ok").click();
    await this.place();
  }

  /** Puts down what hangs at the mouse. */
  async place(x = 520, y = 560) {
    await this.page.mouse.move(x - 40, y - 20);
    await this.page.mouse.move(x, y, { steps: 3 });
    await this.page.mouse.click(x, y);
  }

  /** The ids of the nodes with this name. */
  named(name) {
    return this.page.evaluate((name) => {
      const found = [];
      RED.nodes.eachNode((node) => {
        if (node.name === name) {
          found.push(node.id);
        }
      });
      return found;
    }, name);
  }

  /** The nodes with a triangle, by their ids. */
  invalid() {
    return this.page.evaluate(() => {
      const found = [];
      RED.nodes.eachNode((node) => {
        if (node.valid === false) {
          found.push(node.id);
        }
      });
      return found;
    });
  }

  /** The text that comes when the mouse rests on something of the canvas. */
  async tooltip(place, picture) {
    await this.page.mouse.move(5, 5);
    await place.hover();
    const shown = this.page.locator(".red-ui-flow-port-tooltip");
    await shown.waitFor();
    const lines = await shown.locator("text, tspan").allTextContents();
    if (picture !== undefined) {
      await this.picture(picture);
    }
    await this.page.mouse.move(5, 5);
    await shown.waitFor({ state: "detached" });
    return lines.join("\n");
  }

  /** A node as the editor has it. */
  value(id, property) {
    return this.page.evaluate(([id, property]) => RED.nodes.node(id)[property], [id, property]);
  }

  /** Waits until this is so in the page. */
  async until(what, check, arg) {
    try {
      await this.page.waitForFunction(check, arg, { polling: 25 });
    } catch (error) {
      throw new Error(`not in time: ${what}`, { cause: error });
    }
  }

  /** Waits until somewhere in a place these words stand. */
  async reads(place, words) {
    await eventually(`${words} in ${place}`, async () => {
      // What is drawn has no inner text.
      const texts = await place.evaluateAll((all) => all.map((one) => one.innerText ?? one.textContent));
      const text = texts.join("\n");
      assert.ok(words instanceof RegExp ? words.test(text) : text.includes(words), `it reads: ${text.slice(0, 2000)}`);
      return true;
    });
  }
}
