// Starts the console in its page.

import { render } from "preact";
import { startApp } from "./app.js";
import { keepFocus } from "./focus.js";
import { startShortcuts } from "./shortcuts.js";
import { startRouter } from "./router.js";
import { Shell } from "./shell.js";

const root = document.getElementById("console");
if (root !== null) {
  startRouter(window);
  startShortcuts(document);
  keepFocus(document);
  render(<Shell />, root);
  void startApp();
}
