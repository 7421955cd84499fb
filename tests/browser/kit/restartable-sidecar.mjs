// A sidecar (`redflow serve`) for Node-RED that can be killed and started again with the same address and data.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { environment, startServe } from "./serve.mjs";

/** The price of the fake model, for a million tokens. */
const CONFIG = '[prices."gpt-4.1-mini*"]\ninput = 1000\noutput = 10000\n';

export const TOKEN = "token-of-the-editor-tests";

/** Starts a sidecar. */
export async function restartableSidecar() {
  const data = mkdtempSync(join(tmpdir(), "redflow-editor-sidecar-"));
  const config = join(data, "redflow.toml");
  writeFileSync(config, CONFIG);
  const env = { ...environment(), REDFLOW_TOKEN: TOKEN, NO_COLOR: "1" };
  const { url, log, start, kill } = await startServe(["--config", config, "--data", data], { cwd: data, env });
  return {
    url,
    start,
    kill,
    stop: async () => {
      await kill();
      rmSync(data, { recursive: true, force: true });
    },
    /** Sends a GET request with the token, not through the browser. */
    get: async (path) => {
      const response = await fetch(url() + path, { headers: { authorization: `Bearer ${TOKEN}` } });
      return response.json();
    },
    log,
  };
}
