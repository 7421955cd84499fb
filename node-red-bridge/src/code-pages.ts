// A cache of the sidecar's pages about codes, for each runtime. A page is valid for one version of the sidecar.

import type { Runtime } from "./runtime";
import type { ApiResponse } from "./sidecar-api";

/** The limits of the cache. */
export interface PageLimits {
  /** How many pages; there are fewer codes than the default. */
  pages: number;
  /** Bytes of a page. A longer one is passed on and not cached. */
  bytes: number;
}

export const PAGE_LIMITS: PageLimits = { pages: 250, bytes: 64 * 1024 };

/** A page as the sidecar sent it. */
type Page = Pick<ApiResponse, "text">;

/** Weak: the garbage collector drops a cache with its runtime. */
const caches = new WeakMap<object, CodePages>();

/** The pages of one sidecar. */
export class CodePages {
  private readonly pages = new Map<string, { version: string; text: string }>();

  constructor(
    private readonly runtime: Pick<Runtime, "api" | "state">,
    private readonly limits: PageLimits = PAGE_LIMITS,
  ) {}

  static forRuntime(runtime: Runtime): CodePages {
    const pages = caches.get(runtime) ?? new CodePages(runtime);
    caches.set(runtime, pages);
    return pages;
  }

  /** The page about a code. While the sidecar is offline, the cached page. */
  async page(code: string): Promise<Page> {
    const { api, state } = this.runtime;
    const cached = this.pages.get(code);
    if (cached !== undefined && (state.is !== "connected" || state.version === cached.version)) {
      return cached;
    }
    const { text } = await api.request("GET", `/api/codes/${code}`);
    if (state.is === "connected") {
      this.store(code, state.version, text);
    }
    return { text };
  }

  private store(code: string, version: string, text: string): void {
    this.pages.delete(code);
    if (Buffer.byteLength(text) > this.limits.bytes) {
      return;
    }
    for (const oldest of this.pages.size >= this.limits.pages ? this.pages.keys() : []) {
      this.pages.delete(oldest);
      break;
    }
    this.pages.set(code, { version, text });
  }
}
