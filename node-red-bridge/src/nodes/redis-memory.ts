// `redis-memory`: conversations that the sidecar stores in Redis.

import type { Red } from "../red";
import { registerService } from "../service";

export = function (RED: Red): void {
  registerService(RED, "redis-memory", ["password", "encryptionKey"]);
};
