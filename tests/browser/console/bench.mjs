// Measures the console in a browser, for `cargo xtask bench console`. The benchmark has filled the store and started the sidecar.
// Prints the figures as JSON; each is a list with one value for each round.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { launch } from "../kit/chromium.mjs";
import { eventually } from "../kit/wait.mjs";

const { url, token, rounds, code, prefix, parent, children, inject, startsPerSecond, streamSeconds, idleSeconds } = JSON.parse(process.env.REDFLOW_BENCH);

const DIST = new URL("../../../console/dist/", import.meta.url);
/** How long a tree scrolls from its first row to its last. */
const SCROLL_MS = 5_000;
/** A pause in which a page comes to rest. */
const REST_MS = 2_000;
/** The trace has one event for each task of a thread, and one for each mark that a page sets. */
const TRACED = ["toplevel", "blink.user_timing"];
const [TASK, MARK] = ["ThreadControllerImpl::RunTask", "measured"];

const ROW = '.rows-body [role="row"] a';
const CHILD = '[role="treeitem"].redflow-row-child';

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (text) => process.stderr.write(`${text}\n`);

async function post(path, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) {
    throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  }
  return response.json();
}

/** The cookie of a browser that is signed in. */
async function signIn(browser) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url + (await post("/api/sign-in-codes", {})).path);
  await page.locator("nav#menu").waitFor({ state: "attached" });
  const state = await context.storageState();
  await context.close();
  return state;
}

/** In the page: notes when an element was drawn for the first time. */
function watchFor(selector) {
  window.shown = new Promise((resolve) => {
    const look = () => {
      if (document.querySelector(selector) === null) {
        return;
      }
      observer.disconnect();
      // The timer follows the frame that draws it.
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { childList: true, subtree: true });
  });
}

/** Opens a place in a new session without a cache, and waits until an element is drawn. */
async function open(browser, storageState, hash, selector) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, storageState });
  const page = await context.newPage();
  await page.addInitScript(watchFor, selector);
  await page.goto(`${url}/${hash}`);
  const shown = await page.evaluate(() => window.shown);
  const [paint] = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint").map(({ startTime }) => startTime));
  return { page, shown, paint, close: () => context.close() };
}

/** The longest task of a page's main thread during some work: its milliseconds, and those in the processor. Work gives the page. */
async function longestTask(browser, work) {
  await browser.startTracing(undefined, { categories: TRACED });
  const page = await work();
  // The browser has pages of its own. This one is known by its mark.
  await page.evaluate((mark) => performance.mark(mark), MARK);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const own = traceEvents.find(({ name }) => name === MARK);
  const tasks = traceEvents.filter(({ name, pid, tid }) => name === TASK && pid === own?.pid && tid === own.tid);
  const longest = tasks.reduce((longest, task) => (task.dur > longest.dur ? task : longest), tasks[0]);
  if (longest === undefined) {
    throw new Error("the trace has no task of the page");
  }
  return { ms: longest.dur / 1_000, processorMs: (longest.tdur ?? longest.dur) / 1_000 };
}

/** In the page: scrolls a tree from its first row to its last. */
async function scrollThrough([selector, ms]) {
  const view = document.querySelector(selector);
  const length = view.scrollHeight - view.clientHeight;
  const frames = [];
  let elements = 0;
  const begin = await new Promise(requestAnimationFrame);
  for (let [before, now] = [begin, begin]; now - begin < ms; before = now) {
    view.scrollTop = ((now - begin) / ms) * length;
    now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    elements = Math.max(elements, document.getElementsByTagName("*").length);
  }
  frames.sort((a, b) => a - b);
  return { frame: frames[Math.floor(frames.length * 0.95)], elements };
}

async function measureTree(browser, state) {
  let [opened, scrolled] = [];
  const readTask = await longestTask(browser, async () => {
    opened = await open(browser, state, `#/runs/${parent}`, CHILD);
    const countRows = (child) => Number(document.querySelector(child)?.ariaSetSize);
    await eventually("the whole tree is read", async () => (await opened.page.evaluate(countRows, CHILD)) >= children);
    await rest(REST_MS);
    return opened.page;
  });
  const scrollTask = await longestTask(browser, async () => {
    scrolled = await opened.page.evaluate(scrollThrough, ['[role="tree"]', SCROLL_MS]);
    return opened.page;
  });
  await opened.close();
  return { shown: opened.shown, readTask, scrollTask, ...scrolled };
}

/** Bytes of the heap that are in use. */
async function usedHeap(session) {
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize;
}

/** A list of runs while many begin and end. */
async function measureStream(browser, state) {
  const { page, close } = await open(browser, state, "#/runs", ROW);
  let received = 0;
  page.on("websocket", (socket) => socket.on("framereceived", () => (received += 1)));
  // Its socket is older than this script's interest in it.
  await page.reload();
  await page.locator(ROW).first().waitFor();
  const session = await page.context().newCDPSession(page);
  const start = () => post("/api/runs", { node: inject, wait: false });
  // The first runs load what the page keeps.
  await start();
  await rest(REST_MS);
  const before = await usedHeap(session);
  received = 0;
  const task = await longestTask(browser, async () => {
    const begin = Date.now();
    for (let started = 0; started < streamSeconds * startsPerSecond; started += 1) {
      await rest(begin + (started * 1_000) / startsPerSecond - Date.now());
      await start();
    }
    await rest(REST_MS);
    return page;
  });
  const heap = (await usedHeap(session)) - before;
  await close();
  return { task, heap, eventsPerSecond: received / streamSeconds };
}

/** What pages send while nothing happens. */
async function measureIdle(browser, state) {
  const pages = [["#/", "main h1"], ["#/runs", ROW], [`#/runs/${parent}`, CHILD]];
  let [sent, last] = [[], Date.now()];
  const note = (what) => {
    sent.push(what);
    last = Date.now();
  };
  const opened = [];
  for (const [hash, selector] of pages) {
    const context = await browser.newContext({ storageState: state });
    const page = await context.newPage();
    page.on("request", (request) => note(`${request.method()} ${request.url()}`));
    page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => note(`message ${payload}`)));
    await page.goto(`${url}/${hash}`);
    await page.locator(selector).first().waitFor();
    opened.push(context);
  }
  await eventually("the pages have read all", () => Date.now() - last > REST_MS);
  sent = [];
  await rest(idleSeconds * 1_000);
  await Promise.all(opened.map((context) => context.close()));
  sent.forEach((what) => say(`an idle page sent: ${what}`));
  return sent.length;
}

/** The size of all files of the console, as the build counts it. */
function gzipKilobytes() {
  const sizes = readdirSync(DIST).map((name) => gzipSync(readFileSync(fileURLToPath(new URL(name, DIST))), { level: 9 }).length);
  return sizes.reduce((sum, bytes) => sum + bytes, 0) / 1_000;
}

const browser = await launch();
try {
  const figures = { gzipKilobytes: [gzipKilobytes()] };
  const add = (name, value) => (figures[name] ??= []).push(value);
  const state = await signIn(browser);
  const lists = { list: "#/runs", listByCode: `#/runs?code=${code}`, listByPrefix: `#/runs?prefix=${prefix}` };
  for (let round = 1; round <= rounds; round += 1) {
    for (const [name, hash] of Object.entries(lists)) {
      const { shown, paint, close } = await open(browser, state, hash, ROW);
      await close();
      add(name, shown);
      add("firstPaint", paint);
    }
    const { shown, readTask, scrollTask, frame, elements } = await measureTree(browser, state);
    add("tree", shown);
    add("treeReadTask", readTask.ms);
    add("treeReadProcessor", readTask.processorMs);
    add("treeScrollTask", scrollTask.ms);
    add("treeScrollProcessor", scrollTask.processorMs);
    add("treeFrame", frame);
    add("treeElements", elements);
    say(`round ${round} of ${rounds}`);
  }
  const { task, heap, eventsPerSecond } = await measureStream(browser, state);
  add("streamTask", task.ms);
  add("streamProcessor", task.processorMs);
  add("streamHeap", heap / 1e6);
  figures.eventsPerSecond = eventsPerSecond;
  say("idle pages");
  add("idle", await measureIdle(browser, state));
  process.stdout.write(`${JSON.stringify(figures)}\n`);
} finally {
  await browser.close();
}
