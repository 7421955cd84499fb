// All tests of the Redflow UI's origin and of the sign-in, with one browser and a sidecar for each test.

import { after, before } from "node:test";

import { testAllowedOrigin } from "./allowed-origin.mjs";
import { testFixedPort } from "./fixed-port.mjs";
import { launch } from "./kit/chromium.mjs";
import { testOtherOrigins } from "./other-origins.mjs";
import { testScenarios } from "./scenarios.mjs";
import { testSignIn } from "./sign-in.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

testAllowedOrigin(() => browser);
testOtherOrigins(() => browser);
testScenarios(() => browser);
testFixedPort(() => browser);
testSignIn(() => browser);
