// One tab stop for all bars of a chart: arrows move in time and between tracks.
import { useLayoutEffect, useRef } from "../lib/ui.js";

const BARS = "a.bar";

/** What the element around the bars needs. Bars come, move and go: one is always the stop, and the focus is not lost. */
export function useOneTabStop() {
  const ref = useRef();
  const task = useRef(null); // of the bar in focus
  useLayoutEffect(() => {
    const bars = [...(ref.current?.querySelectorAll(BARS) ?? [])];
    const wasInFocus = task.current && document.activeElement === document.body;
    const inFocus = bars.find((bar) => (wasInFocus ? bar.dataset.task === task.current : bar === document.activeElement));
    const stop = inFocus ?? bars.find((bar) => bar.tabIndex === 0) ?? bars.find((bar) => bar.matches(".run")) ?? bars[0];
    keepOne(bars, stop);
    if (wasInFocus) stop?.focus({ preventScroll: true });
  });
  const onFocusIn = (event) => { task.current = event.target.dataset.task ?? null; };
  // a bar that was moved by a render loses the focus as well: then the effect above comes first
  const onFocusOut = () => queueMicrotask(() => { if (!ref.current?.contains(document.activeElement)) task.current = null; });
  return { ref, onKeyDown: moveFocus, onFocusIn, onFocusOut };
}

function keepOne(bars, stop) {
  for (const bar of bars) {
    const index = bar === stop ? 0 : -1;
    if (bar.tabIndex !== index) bar.tabIndex = index;
  }
}

function moveFocus(event) {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  const from = document.activeElement;
  if (!step || !from.matches(BARS)) return;
  event.preventDefault();
  const box = from.getBoundingClientRect();
  const bars = [...event.currentTarget.querySelectorAll(BARS)];
  let best = null;
  for (const bar of bars) {
    const other = bar.getBoundingClientRect();
    const [dx, dy] = [other.left - box.left, other.top - box.top];
    const isThere = step[0] ? Math.abs(dy) < 6 && dx * step[0] > 1 : dy * step[1] > 6;
    const distance = step[0] ? Math.abs(dx) : 3 * Math.abs(dy) + Math.abs(dx);
    if (isThere && (!best || distance < best.distance)) best = { bar, distance };
  }
  if (!best) return;
  keepOne(bars, best.bar);
  best.bar.focus({ preventScroll: true });
  best.bar.scrollIntoView({ block: "nearest", inline: "nearest" });
}
