// Starts the console in its page.

import { render } from "preact";
import { startApp } from "./app.js";
import { keepFocus } from "./focus.js";
import { startKeys } from "./keys.js";
import { startRouter } from "./router.js";
import { Shell } from "./shell.js";

const root = document.getElementById("console");
if (root !== null) {
  startRouter(window);
  startKeys(document);
  keepFocus(document);
  render(<Shell />, root);
  void startApp();
}
