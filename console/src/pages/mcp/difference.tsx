// What is different between the approved definition of a tool and the one that the server sends now.

import { shade } from "../../app.js";
import { showText } from "../../parts/text.js";
import { t } from "../../words.js";

/** The lines of a difference. The first character of a line says whether it goes (`-`) or comes (`+`). */
export function Difference({ text }: { text: string }) {
  if (shade.value) {
    return <p class="muted">{t("shade.hidden")}</p>;
  }
  return (
    <pre tabIndex={0} aria-label={t("mcp.diff")}>
      {showText(text)
        .split("\n")
        .map((line, index) => {
          const Line = line.startsWith("-") ? "del" : line.startsWith("+") ? "ins" : "span";
          return (
            <Line key={index}>
              <bdi>{line}</bdi>
              {"\n"}
            </Line>
          );
        })}
    </pre>
  );
}
