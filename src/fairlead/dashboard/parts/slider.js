// A number to play with: a slider in steps that grow with the number, and a field for exact values.
import { html, useId } from "../lib/ui.js";

const STOPS = 60;

/** Whole numbers from `least` to four times the value and more, ever farther apart. */
function stopsOf(value, least) {
  const most = Math.max(8, 4 * value);
  const stops = new Set([least, value]);
  for (let i = 0; i <= STOPS; i += 1) stops.add(Math.round(least + (most - least) * (i / STOPS) ** 2));
  return [...stops].sort((a, b) => a - b);
}

/** `value` is as it is, `changed` what was chosen, if anything; `onChange(null)` takes it back. */
export function Slider({ label, sub, value, changed, least, most_needed: needed = 1, unit = "", onChange }) {
  const id = useId();
  const stops = stopsOf(value, least).filter((stop) => stop === 0 || stop >= needed);
  const now = changed ?? value;
  const nearest = stops.reduce((best, stop, i) => (Math.abs(stop - now) < Math.abs(stops[best] - now) ? i : best), 0);
  const choose = (number) => onChange(number === value ? null : number);
  const type = (event) => {
    const number = Math.round(event.target.valueAsNumber);
    if (Number.isFinite(number) && number >= least) choose(number);
  };
  return html`
    <div class=${changed === undefined ? "slider" : "slider moved"}>
      <label for=${id}><b class="cut">${label}</b>${sub && html` <span class="dim">${sub}</span>`}</label>
      <span class="was">${changed !== undefined && html`<span class="dim">was ${value}</span>`}
        <input class="field" type="number" min=${least} step="1" value=${now} aria-label="${label}, exact number" onChange=${type} />${unit && html`<span class="dim">${unit}</span>`}</span>
      <input id=${id} type="range" min="0" max=${stops.length - 1} step="1" value=${nearest} aria-valuetext="${now}${unit}"
        onInput=${(event) => choose(stops[event.target.valueAsNumber])} />
    </div>`;
}
