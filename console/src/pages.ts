// The pages, in the order of the menu.

import type { Page } from "./page.js";
import { page as check } from "./pages/check/check.js";
import { page as flow } from "./pages/flow/flow.js";
import { page as home } from "./pages/home/home.js";
import { page as inbox } from "./pages/inbox/inbox.js";
import { page as knowledge } from "./pages/knowledge/knowledge.js";
import { page as mcp } from "./pages/mcp/mcp.js";
import { page as memory } from "./pages/memory/memory.js";
import { page as models } from "./pages/models/models.js";
import { page as run } from "./pages/run/run.js";
import { page as runs } from "./pages/runs/runs.js";
import { page as settings } from "./pages/settings/settings.js";
import { page as tools } from "./pages/tools/tools.js";
import { page as usage } from "./pages/usage/usage.js";

export const PAGES: readonly Page[] = [home, runs, run, inbox, flow, check, usage, models, tools, mcp, knowledge, memory, settings];
