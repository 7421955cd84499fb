// Foreign texts: shown as text, cut, isolated in their writing direction, and with invisible characters as numbers.
// Sentences that contain them.

import { MAX_ROW_CHARS, cutText, showInvisible } from "@redflow/bindings";
import type { ComponentChildren, VNode } from "preact";
import { type ShownProblem, useEnvironment } from "./environment.js";

export interface ForeignProps {
  as: "code" | "span" | "pre" | "div";
  text: string;
  class?: string;
  maxChars?: number;
}

export function Foreign({ as: Tag, text, class: name, maxChars }: ForeignProps): VNode {
  return (
    <Tag class={name === undefined ? "redflow-foreign" : `${name} redflow-foreign`} dir="auto">
      {showInvisible(cutText(text, maxChars))}
    </Tag>
  );
}

/** What a hidden text is replaced with. */
const SHADE = "•••";

/** What a person, a model or a tool said. Hidden while the environment is shaded. */
export function ContentText({ text, ...props }: ForeignProps): VNode {
  const isHidden = text !== "" && useEnvironment().isShaded?.() === true;
  return <Foreign {...props} text={isHidden ? SHADE : text} />;
}

/** A code, which may come from a newer sidecar. */
export function Code({ code }: { code: string }): VNode {
  return <Foreign as="code" class="redflow-code" text={code} maxChars={MAX_ROW_CHARS} />;
}

export function ToolName({ name }: { name: string }): VNode {
  return <Foreign as="code" class="redflow-tool" text={name} maxChars={MAX_ROW_CHARS} />;
}

/** Marks the place of an element in a sentence. No text contains this character. */
const PLACE = "\uE000";

export interface SentenceProps {
  /** The key of the text. */
  of: string;
  values: Record<string, string | number | VNode>;
}

/** A sentence with elements in it. */
export function Sentence({ of, values }: SentenceProps): VNode {
  const { words } = useEnvironment();
  const elements: VNode[] = [];
  const plain: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(values)) {
    plain[name] = typeof value === "object" ? `${PLACE}${elements.push(value) - 1}${PLACE}` : value;
  }
  const parts: ComponentChildren[] = words(of, plain)
    .split(PLACE)
    .map((part, index) => (index % 2 === 1 ? elements[Number(part)] : part));
  return <>{parts}</>;
}

/** A line with the code and the message of a failed request. */
export function ProblemLine({ code, message, hint }: ShownProblem): VNode {
  return (
    <div class="redflow-trouble">
      <Code code={code} /> <Foreign as="span" text={message} />
      {hint !== undefined && <div class="redflow-hint">{hint}</div>}
    </div>
  );
}
