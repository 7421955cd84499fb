// A table of a page.

import type { ComponentChildren } from "preact";

interface TableProps {
  label: string;
  /** The titles of the columns. */
  heads: readonly ComponentChildren[];
  /** The columns of numbers, from 0. */
  numbers?: readonly number[];
  /** The rows. */
  children: ComponentChildren;
  /** What stands below the rows. */
  foot?: ComponentChildren;
}

/** A table in a box that scrolls by itself, so that the page does not. */
export function Table({ label, heads, numbers, children, foot }: TableProps) {
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label={label}>
      <table>
        <caption class="unseen">{label}</caption>
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th key={index} scope="col" class={numbers?.includes(index) ? "number" : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
      {foot}
    </div>
  );
}
