// A number that matters, with its last hour.
import { html } from "../lib/ui.js";

/** `value` and its `unit`; `aside` at the right of the label; `children` the line below; `spark` a drawing. */
export function Figure({ label, mark, aside, value, unit, spark, children }) {
  return html`
    <div class="fig">
      <span class="k">${mark && html`<i class="pm ${mark}"></i>`}${label}<span class="o">${aside}</span></span>
      <span class="v">${value}<small>${unit}</small></span>
      ${spark ?? html`<span></span>`}
      <span class="d">${children}</span>
    </div>`;
}

const FEWEST = 3; // points that are a line

/** A line through `values`, with a band up to `upper`; null is a gap in what is known. */
export function Sparkline({ values, upper, tone = "ink", label }) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < FEWEST) return html`<svg class="spark" aria-hidden="true"></svg>`;
  const most = Math.max(...known, ...(upper ?? []).filter(Boolean), Number.EPSILON);
  const x = (i) => (100 * i) / (values.length - 1);
  const y = (value) => 27 - 25 * (value / most);
  const line = path(values, x, y);
  const band = upper && bandPath(values, upper, x, y);
  return html`
    <svg class="spark ${tone}" viewBox="0 0 100 28" preserveAspectRatio="none" role="img" aria-label=${label}>
      ${band && html`<path class="band" d=${band} />`}
      <path class="line" d=${line} />
    </svg>`;
}

function path(values, x, y) {
  let open = false;
  return values
    .map((value, i) => {
      if (value === null || value === undefined) {
        open = false;
        return "";
      }
      const step = `${open ? "L" : "M"}${x(i).toFixed(2)} ${y(value).toFixed(2)}`;
      open = true;
      return step;
    })
    .join(" ");
}

/** A piece for each stretch in which both are known. */
function bandPath(lower, upper, x, y) {
  const pieces = [[]];
  for (const [i, low] of lower.entries()) {
    if (low == null || upper[i] == null) pieces.push([]);
    else pieces.at(-1).push([x(i).toFixed(2), y(low).toFixed(2), y(upper[i]).toFixed(2)]);
  }
  return pieces.filter((piece) => piece.length > 1).map((piece) => {
    const top = piece.map(([at, , high]) => `${at} ${high}`);
    const bottom = piece.map(([at, low]) => `${at} ${low}`).reverse();
    return `M${top.join(" L")} L${bottom.join(" L")} Z`;
  }).join(" ");
}
