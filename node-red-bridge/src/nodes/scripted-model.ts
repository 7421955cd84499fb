// `scripted-model`: a model that answers from a list, in the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "scripted-model");
};
