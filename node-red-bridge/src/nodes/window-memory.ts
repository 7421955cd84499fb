// `window-memory`: the last messages of conversations, stored by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "window-memory");
};
