// `redis-memory`: conversations in Redis, kept there by the sidecar.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "redis-memory", ["password", "encryptionKey"]);
};
