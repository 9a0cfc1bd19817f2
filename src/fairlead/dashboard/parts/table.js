// A table of few rows; long ones are lists (list.js).
import { html } from "../lib/ui.js";

/** `columns`: [{ title, cell: (row) => node, num, hide }]; `hide`: not on a phone. */
export function Table({ columns, rows, keyOf, label }) {
  const kind = (column) => [column.num && "num nw", column.hide && "hide-s"].filter(Boolean).join(" ") || undefined;
  return html`
    <div class="tablewrap" role="region" tabindex="0" aria-label=${label}>
      <table>
        <thead><tr>${columns.map((column) => html`<th scope="col" class=${kind(column)}>${column.title}</th>`)}</tr></thead>
        <tbody>${rows.map((row) => html`
          <tr key=${keyOf?.(row)}>${columns.map((column) => html`<td class=${kind(column)}>${column.cell(row)}</td>`)}</tr>`)}
        </tbody>
      </table>
    </div>`;
}

/** Names and values. Values that are null, false or empty are left out. */
export function Facts({ of: facts, top }) {
  const known = facts.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "");
  if (known.length === 0) return null;
  return html`
    <dl class=${top ? "facts top" : "facts"}>
      ${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}
    </dl>`;
}
