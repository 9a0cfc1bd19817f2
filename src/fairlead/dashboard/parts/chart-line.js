// The followed task or job, led through its limits by rings: solid leaving and entering, dotted while it waits.
import { soon, span } from "../lib/format.js";
import { html } from "../lib/ui.js";

const CURVE = 16; // px
const ROOM_FOR_CHIP = 70;

export function Line({ stops, scale, width, height }) {
  if (!stops.length) return null;
  const points = stops.map((stop) => ({
    ...stop,
    x1: scale.x(stop.start),
    x2: scale.x(stop.end),
    y: stop.row.middle(stop.slot),
  }));
  const links = points.slice(1).map((to, i) => link(points[i], to));
  const last = points.at(-1);
  const origin = -scale.shift;
  const present = scale.nowX + origin;
  return html`
    <svg width=${width} height=${height} style=${{ width: `${width}px`, height: `${height}px` }}>
      ${links.map((one) => html`<path class="halo" d=${one.whole} />`)}
      ${links.map((one) => html`<path d=${one.leave} /><path class="wait" d=${one.wait} /><path d=${one.enter} />`)}
    </svg>
    ${points.map((point, i) => html`
      ${i > 0 && html`<i class="ring" style=${{ left: `${point.x1}px`, top: `${point.y}px` }}></i>`}
      ${i < points.length - 1 && html`<i class="ring" style=${{ left: `${point.x2}px`, top: `${point.y}px` }}></i>`}`)}
    ${links.map((one) => one.x2 - Math.max(one.x1, present) > ROOM_FOR_CHIP && html`
      <span class="chip" style=${{ left: `${(Math.max(one.x1, present) + one.x2) / 2}px`, top: `${one.y}px` }}>waits ${span(one.seconds)}</span>`)}
    <i class="ring end" style=${{ left: `${last.x2}px`, top: `${last.y}px` }}></i>
    ${last.x2 - origin < width - 150 && html`
      <span class="chip left" style=${{ left: `${last.x2 + 9}px`, top: `${last.y}px` }}>done about ${soon(last.end, scale.now)}</span>`}`;
}

/** From the end of one step to the start of the next, along the border of their rows. */
function link(from, to) {
  const down = to.y >= from.y;
  const edge = down ? from.row.top + from.row.size : from.row.top;
  const same = from.row === to.row;
  const y = same ? (from.y + to.y) / 2 : edge;
  const [x1, x2] = [from.x2, Math.max(to.x1, from.x2)];
  const bend = Math.min(CURVE, (x2 - x1) / 2);
  const leave = `M${x1} ${from.y} C${x1 + bend} ${from.y} ${x1} ${y} ${x1 + bend} ${y}`;
  const enter = `M${x2 - bend} ${y} C${x2} ${y} ${x2 - bend} ${to.y} ${x2} ${to.y}`;
  const wait = `M${x1 + bend} ${y} L${x2 - bend} ${y}`;
  return { x1, x2, y, leave, enter, wait, whole: `${leave} ${enter}`, seconds: (to.start - from.end) / 1000 };
}
