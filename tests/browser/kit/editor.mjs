// Drives Node-RED's editor in a page, with mouse and keyboard where a user would.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { TIMEOUT_MS, eventually } from "./wait.mjs";

const SCREENSHOTS = fileURLToPath(new URL("../dist/editor/", import.meta.url));

/** Enough to load a flow with two hundred agents. */
const LOAD_MS = 3 * TIMEOUT_MS;

/** A browser context with a language. It keeps its cache. */
export const newContext = (browser, locale = "en-US") => browser.newContext({ viewport: { width: 1400, height: 850 }, locale });

/** Opens the editor of a Node-RED. */
export async function openEditor(context, nodeRed) {
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  const opened = new Editor(page, nodeRed);
  await opened.load();
  return opened;
}

export class Editor {
  /** Errors of the page, and browser dialogs, which we never open. */
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

  /** Loads the editor and waits for its flows. */
  async load() {
    await this.page.goto(this.nodeRed.url);
    const loaded = () => window.RED?.nodes?.version?.() && document.querySelector("#red-ui-header-button-deploy")?.checkVisibility();
    await this.page.waitForFunction(loaded, undefined, { timeout: LOAD_MS });
  }

  /** Closes the editor and clears its local storage for the next one. */
  async close() {
    await this.page.evaluate(() => localStorage.clear());
    await this.page.close();
  }

  /** Asserts that the page had no errors. */
  assertNoErrors() {
    assert.deepEqual(this.errors, [], "errors of the page");
  }

  async screenshot(name) {
    mkdirSync(SCREENSHOTS, { recursive: true });
    await this.page.screenshot({ path: join(SCREENSHOTS, `${this.nodeRed.line}-${name}.png`) });
  }

  /** A node on the canvas. */
  node(id) {
    return this.page.locator(`g.red-ui-flow-node-group[id="${id}"]`);
  }

  /** The red triangle of a node. */
  triangle(id) {
    return this.node(id).locator(".red-ui-flow-node-error");
  }

  /** The badge of an agent. */
  badge(id) {
    return this.node(id).locator(".redflow-badge > g");
  }

  /** Waits for a state of the check: `checked` or `not_checked`. */
  async waitForCheck(state) {
    await this.until(`the flow is ${state}`, (state) => window.RedflowEditor.state().is === state, state);
  }

  port(id, output) {
    return this.node(id).locator(".red-ui-flow-port-output .red-ui-flow-port").nth(output);
  }

  input(id) {
    return this.node(id).locator(".red-ui-flow-port-input .red-ui-flow-port");
  }

  /** Draws a wire with the mouse. */
  async wire(from, output, to) {
    const center = async (locator) => {
      const box = await locator.boundingBox();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [start, end] = [await center(this.port(from, output)), await center(this.input(to))];
    await this.page.mouse.move(...start);
    await this.page.mouse.down();
    await this.page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, { steps: 4 });
    await this.page.mouse.move(...end, { steps: 4 });
    await this.page.mouse.up();
    await this.page.waitForFunction(
      ([from, output, to]) =>
        RED.nodes.getNodeLinks(from, 0).some((link) => link.sourcePort === output && link.target.id === to),
      [from, output, to],
    );
  }

  /** Opens the dialog of a node. */
  async open(id) {
    const open = () => this.node(id).locator(".red-ui-flow-node").dblclick();
    const isOpen = () => this.tray.waitFor({ timeout: 5_000 }).then(() => true, () => false);
    await open();
    // Node-RED counts two clicks only if they come soon after each other, which a busy machine can miss.
    for (let tries = 0; tries < 2 && !(await isOpen()); tries += 1) {
      await open();
    }
    await this.waitForDialog();
    return this.tray;
  }

  /** Opens the dialog of a node that is larger than the canvas. */
  async openById(id) {
    await this.page.evaluate((id) => RED.editor.edit(RED.nodes.node(id)), id);
    await this.waitForDialog();
    return this.tray;
  }

  /** Waits until a dialog is open: Node-RED focuses it last. */
  waitForDialog() {
    return this.page.waitForFunction(() => document.activeElement?.closest(".red-ui-tray"));
  }

  /** The dialog on top. */
  get tray() {
    return this.page.locator(".red-ui-tray").last();
  }

  async done() {
    await this.page.locator("#node-dialog-ok").last().click();
    await this.waitForDialogClosed();
  }

  async cancel() {
    await this.page.locator("#node-dialog-cancel").last().click();
    await this.waitForDialogClosed();
  }

  waitForDialogClosed() {
    return this.page.waitForFunction(() => !document.querySelector(".red-ui-tray"));
  }

  /** Presses the button of an inject node. */
  async press(id) {
    await this.node(id).locator(".red-ui-flow-node-button-button").click();
  }

  /** Presses Deploy and waits for its end. */
  async deploy() {
    await this.page.locator("#red-ui-header-button-deploy").click();
    await this.waitForDeploy();
  }

  /** Deploys a flow with problems, after Node-RED's question. */
  async deployWithProblems() {
    await this.page.locator("#red-ui-header-button-deploy").click();
    await this.notices.getByRole("button", { name: "Confirm deploy" }).click();
    await this.waitForDeploy();
  }

  waitForDeploy() {
    return this.page.waitForFunction(() => !RED.nodes.dirty());
  }

  /** Opens the Redflow sidebar with its shortcut. */
  async openSidebar() {
    await this.page.evaluate(() => RED.view.focus());
    await this.page.keyboard.press("Control+g");
    await this.page.keyboard.press("r");
    const sidebar = this.page.locator(".redflow-sidebar");
    await sidebar.waitFor();
    return sidebar;
  }

  /** Opens a folded text of a timeline and waits for its content. */
  async openText(within, name, expected) {
    const details = within.locator("details", { hasText: name });
    await details.locator("summary").click();
    await this.waitForText(details, expected);
  }

  /** The notifications of Node-RED. */
  get notices() {
    return this.page.locator("#red-ui-notifications .red-ui-notification");
  }

  /** Replaces the text of a field by typing. */
  async type(field, text) {
    await field.fill("");
    await field.press("End");
    await field.pressSequentially(text);
  }

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

  /** Imports nodes into the visible tab with the import dialog. */
  async import(nodes) {
    await this.page.evaluate(() => RED.view.focus());
    await this.page.keyboard.press("Control+i");
    await this.page.locator("#red-ui-clipboard-dialog-import-text").fill(JSON.stringify(nodes));
    // Node-RED reads the text after a key press.
    await this.page.keyboard.press("End");
    await this.page.locator("#red-ui-clipboard-dialog-ok").click();
    await this.dropNodes();
  }

  /** Drops the nodes that are attached to the mouse. */
  async dropNodes(x = 520, y = 560) {
    await this.page.mouse.move(x - 40, y - 20);
    await this.page.mouse.move(x, y, { steps: 3 });
    await this.page.mouse.click(x, y);
  }

  /** The ids of the nodes with this name. */
  idsByName(name) {
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

  /** The ids of the nodes with a triangle. */
  invalidNodes() {
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

  /** The tooltip of an element of the canvas. */
  async tooltip(locator, screenshot) {
    await this.page.mouse.move(5, 5);
    await locator.hover();
    const tooltip = this.page.locator(".red-ui-flow-port-tooltip");
    await tooltip.waitFor();
    const lines = await tooltip.locator("text, tspan").allTextContents();
    if (screenshot !== undefined) {
      await this.screenshot(screenshot);
    }
    await this.page.mouse.move(5, 5);
    await tooltip.waitFor({ state: "detached" });
    return lines.join("\n");
  }

  /** A property of a node in the editor's model. */
  value(id, property) {
    return this.page.evaluate(([id, property]) => RED.nodes.node(id)[property], [id, property]);
  }

  /** Waits until `check(arg)` is true in the page. */
  async until(what, check, arg) {
    try {
      await this.page.waitForFunction(check, arg, { polling: 25 });
    } catch (error) {
      throw new Error(`not in time: ${what}`, { cause: error });
    }
  }

  /** Waits until the elements contain a text or match a pattern. */
  async waitForText(locator, expected) {
    await eventually(`${expected} in ${locator}`, async () => {
      // SVG elements have no innerText.
      const texts = await locator.evaluateAll((all) => all.map((one) => one.innerText ?? one.textContent));
      const text = texts.join("\n");
      assert.ok(expected instanceof RegExp ? expected.test(text) : text.includes(expected), `the text is: ${text.slice(0, 2000)}`);
      return true;
    });
  }
}
