// The keyboard: each part of a page says which keys it answers to, and `?` lists those that work now.
import { signal, useEffect, useRef } from "./ui.js";

const SEQUENCE = 1_000; // ms between the two keys of `g t`

/** Of every part that is shown: { keys: {key: [what it does, function]} }, the latest last. */
export const bindings = signal([]);

/** useKeys({ "g t": ["Tasks", () => go("/tasks")] }) as long as the component is shown. */
export function useKeys(keys, isActive = true) {
  const latest = useRef(keys);
  latest.current = keys;
  const names = Object.keys(keys).join();
  useEffect(() => {
    if (!isActive || !names) return undefined;
    const binding = { of: latest };
    bindings.value = [...bindings.peek(), binding];
    return () => {
      bindings.value = bindings.peek().filter((one) => one !== binding);
    };
  }, [names, isActive]);
}

let first = "";
let firstAt = 0;

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const key = event.key;
    const sequence = Date.now() - firstAt < SEQUENCE ? `${first} ${key}` : key;
    const run = bound(sequence) ?? bound(key);
    first = key;
    firstAt = Date.now();
    if (run && run(event) !== false) event.preventDefault();
  });
}

/** Letters belong to a field while somebody writes in it; Escape still closes. */
function isTyping(event) {
  const field = event.target.closest?.("input, textarea, select, [contenteditable]");
  return field && event.key !== "Escape";
}

function bound(key) {
  const found = bindings.peek().findLast((binding) => key in binding.of.current);
  return found?.of.current[key][1];
}
