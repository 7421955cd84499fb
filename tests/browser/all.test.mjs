// The whole, with one browser: one part after the other, each with a sidecar of its own.

import { after, before } from "node:test";

import { admitted } from "./admitted.mjs";
import { fixedPort } from "./fixed-port.mjs";
import { launch } from "./kit/chromium.mjs";
import { strangers } from "./strangers.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

admitted(() => browser);
strangers(() => browser);
fixedPort(() => browser);
