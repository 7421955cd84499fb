// Starts the console in its page.

import { render } from "preact";
import { startApp } from "./app.js";
import { startKeys } from "./keys.js";
import { startRouter } from "./router.js";
import { Shell } from "./shell.js";

const root = document.getElementById("console");
if (root !== null) {
  startRouter(window);
  startKeys(document);
  render(<Shell />, root);
  void startApp();
}
