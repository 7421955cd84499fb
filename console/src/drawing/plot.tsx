// Stacked columns by day. The same numbers stand in a table, which a reader hears and a test reads.

import { useState } from "preact/hooks";
import { Table } from "../parts/table.js";
import { Name, showName } from "../parts/text.js";
import { t } from "../words.js";
import type { Series } from "../pages/usage/sums.js";

/** How many keys have a colour of their own; the rest is drawn as one. */
export const COLOURS = 8;

interface PlotProps {
  label: string;
  days: readonly string[];
  series: readonly Series[];
  /** Writes a value of the plot. */
  format: (value: number) => string;
  /** Writes a value of the table, which is not rounded. */
  formatExactly: (value: number) => string;
  isSmall?: boolean;
}

/** The series that are drawn: the largest by themselves, all others as one. */
export function groupSeries(series: readonly Series[], other: string): Series[] {
  const named = series.filter(({ name }) => name !== "");
  const rest = [...named.slice(COLOURS - 1), ...series.filter(({ name }) => name === "")];
  const shown = named.slice(0, COLOURS - 1);
  if (rest.length === 0) {
    return shown;
  }
  const values = new Map<string, number>();
  for (const one of rest) {
    for (const [day, value] of one.values) {
      values.set(day, (values.get(day) ?? 0) + value);
    }
  }
  return [...shown, { name: other, values, total: rest.reduce((sum, { total }) => sum + total, 0) }];
}

/** Where the column of each day begins and ends, for each series: the columns of a day stand on each other. */
export function layColumns(days: readonly string[], series: readonly Series[]): [from: number, to: number][][] {
  const heights = days.map(() => 0);
  return series.map(({ values }) =>
    days.map((day, place) => {
      const from = heights[place] ?? 0;
      const to = from + (values.get(day) ?? 0);
      heights[place] = to;
      return [from, to];
    }),
  );
}

export function Plot({ label, days, series, format, formatExactly, isSmall }: PlotProps) {
  const [isTable, setTable] = useState(false);
  const shown = groupSeries(series, t("usage.other"));
  const layers = layColumns(days, shown);
  const highest = Math.max(0, ...(layers.at(-1) ?? []).map(([, to]) => to)) || 1;
  // Half of a whole number is whole too, so that no level is rounded.
  const top = Number.isInteger(highest) ? highest + (highest % 2) : highest;
  const [width, height] = [Math.max(300, days.length * 12), isSmall ? 110 : 220];
  const [left, bottom] = [52, 20];
  const step = (width - left) / Math.max(1, days.length);
  const y = (value: number): number => (height - bottom - 8) * (1 - value / top) + 8;
  const total = shown.reduce((sum, one) => sum + one.total, 0);
  return (
    <figure class="plot">
      <figcaption>
        {label}: <strong>{format(total)}</strong>
        <button type="button" class="quiet small" aria-pressed={isTable} aria-label={t("plot.table.of", { label })} onClick={() => setTable(!isTable)}>
          {t("plot.table")}
        </button>
      </figcaption>
      {isTable ? (
        <PlotTable label={label} days={days} series={series} format={formatExactly} />
      ) : (
        <div class="plot-box" tabIndex={0} role="group" aria-label={label}>
          <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={t("plot.summary", { label, total: format(total), days: days.length })}>
            {[0, 0.5, 1].map((level) => (
              <g key={level} class="plot-level">
                <line x1={left} x2={width} y1={y(top * level)} y2={y(top * level)} />
                <text x={left - 6} y={y(top * level) + 4} text-anchor="end">
                  {format(top * level)}
                </text>
              </g>
            ))}
            {layers.map((layer, index) => (
              <g key={index} class={`key-${index}`}>
                {layer.map(([from, to], place) =>
                  to > from ? (
                    <rect key={place} x={left + place * step + step * 0.12} width={step * 0.76} y={y(to)} height={Math.max(0.5, y(from) - y(to))}>
                      <title>{`${days[place] ?? ""} ${showName(shown[index]?.name ?? "")}: ${format(to - from)}`}</title>
                    </rect>
                  ) : null,
                )}
              </g>
            ))}
            {days.map((day, index) =>
              index % Math.ceil(days.length / 7) === 0 ? (
                <text key={day} class="plot-day" x={left + index * step + step / 2} y={height - 5} text-anchor="middle">
                  {day.slice(5)}
                </text>
              ) : null,
            )}
          </svg>
        </div>
      )}
      <ul class="legend">
        {shown.map(({ name, total: sum }, index) => (
          <li key={index}>
            <svg class={`key-${index}`} viewBox="0 0 10 10" aria-hidden="true">
              <rect width="10" height="10" />
            </svg>{" "}
            <Name text={name} /> {format(sum)}
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** All values, also those of keys that the plot draws as one. */
function PlotTable({ label, days, series, format }: Pick<PlotProps, "label" | "days" | "series" | "format">) {
  const filled = days.filter((day) => series.some(({ values }) => (values.get(day) ?? 0) > 0));
  return (
    <Table label={label} heads={[t("usage.day"), ...series.map(({ name }) => <Name text={name} fallback={t("usage.other")} />)]} numbers={series.map((_, index) => index + 1)}>
          {filled.map((day) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              {series.map(({ values }, index) => (
                <td key={index} class="number">
                  {format(values.get(day) ?? 0)}
                </td>
              ))}
            </tr>
          ))}
    </Table>
  );
}
