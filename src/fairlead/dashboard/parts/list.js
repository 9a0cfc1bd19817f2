// A list of any length: only the rows in sight exist. Its order is held while somebody points at it or is in it.
import { useKeys } from "../lib/keys.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../lib/ui.js";

const MARGIN = 8; // rows above and below those in sight

/**
 * `rows` with `keyOf(row)`; `row(row)` gives the cells; `href(row)` where Enter goes. `columns` is the class that
 * lays out head and rows; `head` their titles. `onEnd` is called when the last row comes into sight, for more.
 */
export function List({ rows, keyOf, row: cells, href, columns, head, height = 36, current, label, onEnd, total }) {
  const outer = useRef();
  const range = useSignal([0, 40]);
  const held = useHeld(rows, keyOf);
  const shown = held.rows;
  const at = useSignal(-1);

  useEffect(() => {
    const measure = () => {
      const top = outer.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / height) - MARGIN);
      const last = Math.ceil((innerHeight - top) / height) + MARGIN;
      if (range.peek()[0] !== first || range.peek()[1] !== last) range.value = [first, last];
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [height]);

  const [first, last] = range.value;
  const reachesEnd = last >= shown.length;
  useEffect(() => {
    if (reachesEnd) onEnd?.();
  }, [reachesEnd, shown.length]);

  const focus = (index) => {
    if (index < 0 || index >= shown.length) return;
    at.value = index;
    const top = outer.current.getBoundingClientRect().top + index * height;
    if (top < 80 || top > innerHeight - 2 * height) scrollBy(0, top - innerHeight / 2);
    requestAnimationFrame(() => outer.current?.querySelector(`[data-index="${index}"]`)?.focus());
  };
  useKeys({
    j: ["next row", () => focus(at.peek() + 1)],
    k: ["row before", () => focus(at.peek() - 1)],
  });

  const visible = shown.slice(first, last);
  return html`
    <div class="list" role="group" aria-label=${label} ...${held.listeners}>
      <div class="lh ${columns}" aria-hidden="true">${head}</div>
      <div class="rowsbox" ref=${outer} style=${{ height: `${shown.length * height}px` }}>
        ${visible.map((one, i) => html`
          <a class="lr ${columns}" key=${keyOf(one)} href=${href?.(one)} data-index=${first + i}
            style=${{ transform: `translateY(${(first + i) * height}px)`, height: `${height}px` }}
            aria-current=${current !== undefined && keyOf(one) === current ? "true" : undefined}
            onFocus=${() => { at.value = first + i; }}>${cells(one)}</a>`)}
      </div>
    </div>
    ${held.changes > 0 && html`
      <button class="btn sm changes" onClick=${held.apply}>${held.changes} ${held.changes === 1 ? "change" : "changes"}</button>`}
    <p class="vh" role="status">${total ?? shown.length} rows</p>`;
}

/** The rows as they were when the pointer or the focus came; each is as new as can be. */
function useHeld(rows, keyOf) {
  const order = useSignal(null); // keys, while it is held
  const inside = useRef(0);
  const kept = useRef(new Map());
  const enter = () => {
    inside.current += 1;
    if (!order.peek()) order.value = rows.map(keyOf);
  };
  const leave = () => {
    inside.current = Math.max(0, inside.current - 1);
    if (!inside.current) order.value = null;
  };
  const listeners = {
    onMouseEnter: enter,
    onMouseLeave: leave,
    onFocusIn: (event) => event.currentTarget.contains(event.relatedTarget) || enter(),
    onFocusOut: (event) => event.currentTarget.contains(event.relatedTarget) || leave(),
  };
  const keys = order.value;
  // not for every frame of a scroll: there may be ten thousand rows
  const held = useMemo(() => (keys ? inOrder(rows, keys, kept.current, keyOf) : { rows, changes: 0 }), [rows, keys]);
  return { ...held, listeners, apply: () => { order.value = rows.map(keyOf); } };
}

/** `keys` first, in their order, and how many changes that hides. */
function inOrder(rows, keys, kept, keyOf) {
  const known = new Set(keys);
  const latest = new Map(rows.map((row) => [keyOf(row), row]));
  const added = rows.filter((row) => !known.has(keyOf(row)));
  // those at the end were pushed out of what was read, and are where they were
  const gone = keys.slice(0, keys.findLastIndex((key) => latest.has(key)) + 1).filter((key) => !latest.has(key)).length;
  // rows that were loaded at the end push nothing; if none is known, all of them are new ones
  const lastKnown = rows.findLastIndex((row) => known.has(keyOf(row)));
  const tail = lastKnown < 0 ? [] : rows.slice(lastKnown + 1);
  return { rows: [...keptRows(kept, latest, keys), ...tail], changes: added.length - tail.length + gone };
}

/** Rows by key, also those that have gone since. */
function keptRows(kept, latest, keys) {
  for (const [key, row] of latest) kept.set(key, row);
  const wanted = new Set(keys);
  for (const key of kept.keys()) if (!wanted.has(key) && !latest.has(key)) kept.delete(key);
  return keys.map((key) => kept.get(key)).filter(Boolean);
}
