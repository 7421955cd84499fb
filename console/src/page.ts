// What a page is. Another part of the product adds one by a folder in pages/ and a line in pages.ts.

import type { ComponentType } from "preact";
import type { Feature } from "@redflow/bindings";
import type { Key } from "./words.js";

export interface PageProps {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
}

export interface Page {
  /** The page exists if the session names this feature. */
  feature: Feature;
  /** The pattern of its address, such as `runs/:id`. */
  route: string;
  title: Key;
  view: ComponentType<PageProps>;
  /** Whether the menu leaves it out. */
  isHidden?: boolean;
}
