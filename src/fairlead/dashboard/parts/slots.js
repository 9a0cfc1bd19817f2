// The slots of a limit in a row of a list: one cell each, in the hue of its holder, outlined when free.
import { hue } from "../lib/format.js";
import { html } from "../lib/ui.js";

const MOST_CELLS = 60;
const WITHOUT_GAPS = 17;

/** `holders`: priorities of those that hold a slot, as far as they are known; `active` counts them all. */
export function SlotCells({ limit, active, holders = [] }) {
  const words = `${active} of ${limit} held`;
  if (limit > MOST_CELLS) return html`<${UseBar} part=${active / limit} label=${words} />`;
  const cells = Array.from({ length: Math.max(limit, active) }, (_, i) => (i < active ? `held ${hue(holders[i])}` : "o"));
  return html`
    <div class=${limit >= WITHOUT_GAPS ? "slots big" : "slots"} role="img" aria-label=${words}>
      ${cells.map((kind) => html`<i class=${kind}></i>`)}
    </div>`;
}

/** The bucket of a rate, or a limit with very many slots. */
export function UseBar({ part, label }) {
  return html`
    <div class="usebar" role="img" aria-label=${label}><i style=${{ width: `${100 * Math.min(1, part)}%` }}></i></div>`;
}
