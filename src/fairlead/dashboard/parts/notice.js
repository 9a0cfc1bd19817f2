// What is shown in place of something: that it is not here yet, or why it cannot be.
import { html, useEffect, useSignal } from "../lib/ui.js";

const LONG = 3_000; // ms

/** Strips in the shape of what comes; after a while a sentence. */
export function Waiting({ rows = 3 }) {
  const long = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => { long.value = true; }, LONG);
    return () => clearTimeout(timer);
  }, []);
  return html`
    <div class="waiting" role="status">
      <span class=${long.value ? "sub" : "vh"}>Still asking the gateway.</span>
      ${Array.from({ length: rows }, () => html`<i></i>`)}
    </div>`;
}

/** The sentence of the API, which says what to do, and the id that finds the request in the log. */
export function ProblemNotice({ error }) {
  return html`
    <div class="warnbox" role="alert">
      <span>${error.message} ${error.requestId && html`<span class="dim mono">${error.requestId}</span>`}</span>
    </div>`;
}

/** A resource of lib/live.js: waits for it, says what is wrong with it, and shows it. */
export function Shown({ resource, rows, children }) {
  const { data, error } = resource;
  return html`
    ${error && html`<${ProblemNotice} error=${error} />`}
    ${data === undefined ? !error && html`<${Waiting} rows=${rows} />` : children(data)}`;
}
