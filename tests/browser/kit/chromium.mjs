// Starts the system's Chromium without a window.

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import { chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome.exe"];

/** A domain name that resolves to this machine, for DNS rebinding tests. */
export const REBOUND = "rebound.test";

// No connections except to the servers of the tests.
const ARGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-proxy-server",
  `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`,
];

function executable() {
  if (process.env.CHROMIUM) {
    return process.env.CHROMIUM;
  }
  const folders = (process.env.PATH ?? "").split(delimiter);
  const found = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
  if (!found) {
    throw new Error("there is no Chromium: install it from your system's packages, or name its program in CHROMIUM");
  }
  return found;
}

/** Starts a browser with its own profile. Without the sandbox, which does not work for root: every page here is ours. */
export const launch = () =>
  chromium.launch({ executablePath: executable(), args: ARGS, headless: true, chromiumSandbox: false });
