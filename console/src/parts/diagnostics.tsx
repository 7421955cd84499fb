// The problems of a flow, errors first.

import type { Diagnostic } from "@redflow/bindings";
import { t, tOf } from "../words.js";
import { helpOf, messageOf } from "./phrases.js";
import { Fix } from "./problem.js";
import { Name, Words } from "./text.js";

/** The most problems that are shown. */
const MAX_SHOWN = 200;

export function Diagnostics({ diagnostics, omitted }: { diagnostics: readonly Diagnostic[]; omitted?: Readonly<Record<string, number>> | undefined }) {
  const left = Math.max(0, diagnostics.length - MAX_SHOWN) + Object.values(omitted ?? {}).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <ul class="diagnostics">
        {diagnostics.slice(0, MAX_SHOWN).map((one, index) => (
          <li key={index} class={`problem severity-${one.severity}`}>
            <p>
              <strong>{tOf("severity", one.severity)}</strong> <code>{one.code}</code>{" "}
              {one.node === null ? null : (
                <>
                  <Name text={one.node.name} fallback={one.node.id} />:{" "}
                </>
              )}
              <Words text={messageOf(one)} />
            </p>
            <p>
              <Words text={helpOf(one)} />
            </p>
            <Fix code={one.code} />
          </li>
        ))}
      </ul>
      {left > 0 ? <p class="muted">{t("diagnostics.more", { n: left })}</p> : null}
    </>
  );
}
