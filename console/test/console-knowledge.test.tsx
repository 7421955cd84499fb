// The knowledge bases: the list, a search with its reasons, documents and passages part by part, files that are added, and removal.

import { Refusal, requests, until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import type { Collection, KnowledgePassage, StoredPassage } from "@redflow/bindings";
import { HOSTILE, button, find, open, sidecar, submit, text, type } from "./console-page-kit.js";
import { shade } from "../src/app.js";
import { tagsOf } from "../src/pages/knowledge/add-files.js";
import { parsePlace, place } from "../src/router.js";

const base = (name: string, embedder = "hash"): Collection => ({ name, embedder, dimensions: 512, settings: {}, entries: 1_234, documents: 2, createdAt: 1_000 });
const document = (name: string, title = name) => ({ name, title, origin: `/files/${name}`, digest: "d", bytes: 1_500, chunks: 3, tags: ["pumps", HOSTILE], addedAt: 1_000 });
const passage = (chunk: number, content: string): StoredPassage => ({ content, metadata: { document: "pump.md", title: "Pump", headings: ["Care", "Reset"], chunk } });
const hit: KnowledgePassage = {
  content: `Press the red button. ${HOSTILE}`,
  score: 0.756,
  metadata: { document: "pump.md", title: "The pump", headings: ["Care", "Reset"], page: 7, chunk: 21 },
  reason: { vectorRank: 2, cosine: 0.512, textRank: 1, ageMs: 120_000 },
};
const BASES = { "GET /api/kb": { knowledgeBases: [base("manuals"), base(HOSTILE, "openai/text-embedding-3-small")] } };
const ONE = { ...BASES, "GET /api/kb/manuals/documents": { documents: [document("pump.md", "The pump"), document("parts.csv")] } };

test("the list says how large a knowledge base is and what a search finds", async (t) => {
  sidecar(BASES);
  const root = await open(t, "#/knowledge");
  await until("the rows", () => root.querySelectorAll("tbody tr").length === 2);
  assert.deepEqual(
    [...root.querySelectorAll("tbody tr")].map((row) => [...row.children].map(({ textContent }) => textContent)),
    [
      ["manuals", "2", "1,234", "hash", "words only"],
      [HOSTILE.replace("\u202E", "⟨202E⟩"), "2", "1,234", "openai/text-embedding-3-small", "meaning"],
    ],
  );
  assert.equal(root.querySelector("tbody img"), null);
  assert.equal(root.querySelector("tbody a")?.getAttribute("href"), "#/knowledge/manuals");
});

test("a search shows passages and why; the shade hides its words", async (t) => {
  const asked: unknown[] = [];
  sidecar({ ...ONE, "POST /api/kb/manuals/search": (body: unknown) => (asked.push(body), asked.length === 1 ? { results: [hit] } : { results: [] }) });
  const root = await open(t, "#/knowledge/manuals");
  t.after(() => (shade.value = false));
  await until("the form", () => root.querySelector("[role=search]") !== null);
  const field = find<HTMLInputElement>(root, "[role=search] input");
  type(field, "which button?");
  const [mode, limit] = root.querySelectorAll<HTMLSelectElement>("[role=search] select");
  assert.ok(mode && limit);
  assert.deepEqual([...mode.options].map(({ textContent }) => textContent), ["automatic", "by meaning", "by words", "by both"]);
  type(mode, "hybrid");
  type(limit, "20");
  await until("both are chosen", () => mode.value === "hybrid" && limit.value === "20");
  submit(find(root, "[role=search]"));
  await until("the passage", () => root.querySelector(".hits li") !== null);
  assert.deepEqual(asked, [{ text: "which button?", limit: 20, mode: "hybrid" }]);
  const found = find(root, ".hits li");
  for (const words of ["1. The pump", "Care › Reset › page 7", "Press the red button. <img src=x", "⟨202E⟩", "Score0.76", "Rank by vector2", "Cosine0.51", "Rank by words1", "Added2 min ago"]) {
    assert.ok(text(found).includes(words), `${words} in ${text(found)}`);
  }
  assert.equal(found.querySelector("img"), null);
  assert.equal(found.querySelector("a")?.getAttribute("href"), "#/knowledge/manuals?document=pump.md&at=21");
  shade.value = true;
  await until("hidden", () => text(find(root, ".hits")).includes("Hidden. Press h") && field.value === "");
  for (const words of ["The pump", "Reset", "red button"]) {
    assert.ok(!text(root).includes(words), words);
  }
  assert.deepEqual([text(root).includes("pump.md"), text(root).includes("page 7")], [true, true]);
  shade.value = false;
  await until("shown again", () => field.value === "which button?");
  submit(find(root, "[role=search]"));
  await until("nothing is found", () => text(root).includes("Nothing was found."));
});

test("a search that fails says why", async (t) => {
  sidecar({ ...ONE, "POST /api/kb/manuals/search": new Refusal(502, "EMBEDDINGS_FAILED", "no vectors") });
  const root = await open(t, "#/knowledge/manuals");
  await until("the form", () => root.querySelector("[role=search]") !== null);
  type(find(root, "[role=search] input"), "x");
  submit(find(root, "[role=search]"));
  await until("the problem", () => text(root).includes("EMBEDDINGS_FAILED no vectors"));
  assert.equal(root.querySelector("[aria-busy=true]"), null);
});

test("documents and passages are read part by part", async (t) => {
  sidecar({
    ...BASES,
    "GET /api/kb/manuals/documents": (_: unknown, query: URLSearchParams) =>
      query.get("after") === null ? { documents: [document("pump.md", "The pump")], next: "pump.md" } : { documents: [document("valve.md")] },
    "GET /api/kb/manuals/passages": (_: unknown, query: URLSearchParams) =>
      query.get("after") === "20" ? { passages: [passage(21, "The last one.")] } : { passages: [passage(1, "The first one.")], next: 20 },
  });
  const root = await open(t, "#/knowledge/manuals?document=pump.md&at=21");
  await until("the passage that was found", () => text(root).includes("The last one."));
  assert.ok(requests.includes("GET /api/kb/manuals/passages?document=pump.md&limit=20&after=20"), requests.join("\n"));
  const sheet = find(root, "aside");
  assert.ok(text(sheet).includes("/files/pump.md") && text(sheet).includes("Care › Reset"), text(sheet));
  assert.deepEqual([button(sheet, "Earlier part").disabled, button(sheet, "Next part").disabled], [false, true]);
  button(sheet, "Earlier part").click();
  await until("the first passage", () => text(root).includes("The first one."));
  assert.deepEqual([button(sheet, "Earlier part").disabled, button(sheet, "Next part").disabled], [true, false]);
  const list = find(root, "section[aria-labelledby=kb-documents]");
  assert.ok(text(list).includes("1.5 kB") && text(list).includes("pumps, <img"), text(list));
  button(list, "Next part").click();
  await until("the next documents", () => text(list).includes("valve.md"));
  assert.ok(requests.includes("GET /api/kb/manuals/documents?limit=50&after=pump.md"), requests.join("\n"));
  assert.equal(button(list, "Next part").disabled, true);
});

test("a document and a knowledge base are removed after a question", async (t) => {
  const left = [document("pump.md"), document("parts.csv")];
  let bases = [base("manuals")];
  const refused = [new Refusal(503, "STOPPING", "later")];
  sidecar({
    "GET /api/kb": () => ({ knowledgeBases: bases }),
    "GET /api/kb/manuals/documents": () => ({ documents: left }),
    "GET /api/kb/manuals/passages": { passages: [passage(1, "Text")] },
    "DELETE /api/kb/manuals/documents": () => refused.pop() ?? (left.shift(), {}),
    "DELETE /api/kb/manuals": () => ((bases = []), {}),
  });
  const root = await open(t, "#/knowledge/manuals?document=pump.md");
  const confirm = async (name: string): Promise<void> => {
    await until(`${name} is there`, () => [...root.querySelectorAll("button")].some(({ textContent }) => textContent === name));
    button(root, name).click();
    await until("the question", () => root.querySelector("dialog") !== null);
    button(find(root, "dialog"), "Remove").click();
    await until("the answer", () => root.querySelector("dialog") === null);
  };
  await confirm("Remove the document");
  await until("the failure", () => text(root).includes("STOPPING: later"));
  assert.ok(root.querySelector("aside"));
  await confirm("Remove the document");
  await until("one is left", () => root.querySelectorAll("tbody tr").length === 1 && root.querySelector("aside") === null);
  assert.equal(requests.filter((one) => one === "DELETE /api/kb/manuals/documents?document=pump.md").length, 2);
  assert.equal(window.location.hash, "#/knowledge/manuals");
  await confirm("Remove the knowledge base");
  await until("the list", () => text(root).includes("There are no knowledge bases yet."));
  assert.equal(window.location.hash, "#/knowledge");
});

test("files are added one after the other, each with what became of it", async (t) => {
  let bases: Collection[] = [];
  const refused: Record<string, Refusal> = { "broken.pdf": new Refusal(422, "DOCUMENT_UNREADABLE", "no text") };
  sidecar({
    "GET /api/kb": () => ({ knowledgeBases: bases }),
    "POST /api/kb/new-one/documents": (body: unknown, query: URLSearchParams) => {
      const name = query.get("document") ?? "";
      assert.equal((body as File).name, name);
      bases = [base("new-one")];
      return refused[name] ?? { document: name, status: name === "old.txt" ? "unchanged" : "added", passages: 3, embedded: 3, tokens: 9, findsMeaning: false };
    },
  });
  const root = await open(t, "#/knowledge");
  await until("the form", () => root.querySelector("form.drop") !== null);
  const [name, tags] = root.querySelectorAll<HTMLInputElement>("form.drop input[type=text]");
  assert.ok(name && tags);
  assert.equal(button(root, "Choose files").disabled, true);
  type(name, " new-one ");
  type(tags, "a, b c,,");
  await until("files can be chosen", () => !button(root, "Choose files").disabled);
  const large = Object.defineProperty(new window.File([""], "large.md"), "size", { value: 32 * 1024 * 1024 + 1 });
  const files = [new window.File(["x"], "new.md"), new window.File(["x"], "old.txt"), new window.File(["x"], "broken.pdf"), large];
  const input = find<HTMLInputElement>(root, "input[type=file]");
  Object.defineProperty(input, "files", { value: files, configurable: true });
  input.dispatchEvent(new window.Event("change", { bubbles: true }));
  const rows = (): string[] => [...root.querySelectorAll(".newest li")].map((row) => text(row as HTMLElement));
  await until("all have an outcome", () => rows().length === 4 && rows().every((row) => !/waits|being added/.test(row)));
  assert.deepEqual(
    ["broken.pdfnot addedDOCUMENT_UNREADABLE no text", "large.mdnot addedDOCUMENT_TOO_LARGE The file is larger than 32 MiB.", "new.mdaddedPassages: 3", "old.txtunchangedPassages: 3"].filter((row, index) => !rows()[index]?.startsWith(row)),
    [],
    rows().join("\n"),
  );
  const sent = requests.filter((one) => one.startsWith("POST"));
  assert.deepEqual(sent, ["new.md", "old.txt", "broken.pdf"].map((file) => `POST /api/kb/new-one/documents?document=${file}&tag=a&tag=b%20c`));
  await until("the list has it", () => root.querySelector("tbody a")?.getAttribute("href") === "#/knowledge/new-one");
  // They are still there on the page of the knowledge base, and on no other one.
  place.value = parsePlace("#/knowledge/other");
  await until("another page", () => text(root).includes("There is no knowledge base with this name."));
  assert.deepEqual(rows(), []);
  place.value = parsePlace("#/knowledge/new-one");
  await until("its page", () => rows().length === 4);
  assert.deepEqual([tagsOf(""), tagsOf(" ,")], [[], []]);
});
