// The pages on codes that a sidecar gave, kept for as long as they can be right. Owns how much of them is kept, for each
// runtime by itself; knows no page of its own.

import type { Runtime } from "./runtime";
import type { ApiAnswer } from "./sidecar-api";

/** How much is kept. */
export interface PageBounds {
  /** Pages: there are fewer codes than that. */
  pages: number;
  /** Bytes of a page as it came. A longer one is passed on and not kept. */
  bytes: number;
}

/** What is used unless a test says otherwise. */
export const PAGE_BOUNDS: PageBounds = { pages: 250, bytes: 64 * 1024 };

/** A page as it came. */
type Page = Pick<ApiAnswer, "text">;

/** Forgotten with their runtimes. */
const known = new WeakMap<object, CodePages>();

/** The pages of one sidecar. */
export class CodePages {
  private readonly kept = new Map<string, { version: string; text: string }>();

  constructor(
    private readonly runtime: Pick<Runtime, "api" | "state">,
    private readonly bounds: PageBounds = PAGE_BOUNDS,
  ) {}

  /** Those of a runtime. */
  static of(runtime: Runtime): CodePages {
    const pages = known.get(runtime) ?? new CodePages(runtime);
    known.set(runtime, pages);
    return pages;
  }

  /** The page on a code. It is the same as long as the sidecar is; while that is away, the one there was. */
  async page(code: string): Promise<Page> {
    const { api, state } = this.runtime;
    const kept = this.kept.get(code);
    if (kept !== undefined && (state.is !== "connected" || state.version === kept.version)) {
      return kept;
    }
    const { text } = await api.ask("GET", `/api/codes/${code}`);
    if (state.is === "connected") {
      this.keep(code, state.version, text);
    }
    return { text };
  }

  private keep(code: string, version: string, text: string): void {
    this.kept.delete(code);
    if (Buffer.byteLength(text) > this.bounds.bytes) {
      return;
    }
    for (const oldest of this.kept.size >= this.bounds.pages ? this.kept.keys() : []) {
      this.kept.delete(oldest);
      break;
    }
    this.kept.set(code, { version, text });
  }
}
