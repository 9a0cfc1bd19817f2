// Small signs that look the same everywhere: priority, health, state.
import { hue, span } from "../lib/format.js";
import { html } from "../lib/ui.js";

/** A square and the word; `bare` without the word, beside a legend only. */
export function Priority({ of: priority, bare }) {
  if (!priority) return html`<span class="dim">–</span>`;
  return html`<span class="p ${hue(priority)}">${bare ? html`<span class="vh">${priority}</span>` : priority}</span>`;
}

/** A dot and words, never the dot alone. `state`: good, warn, bad or off. */
export const Health = ({ state, children }) => html`<span class="health"><span class="dot ${state}"></span>${children}</span>`;

const HEALTH = { completed: "good", failed: "bad", dead_letter: "bad", COMPLETED: "good", FAILED: "bad" };
const WORDS = { dead_letter: "dead letter", executing: "runs", queued: "waits", delayed: "starts later" };

/** The state of a task or job, in the words of its page. */
export function Status({ of: status }) {
  return html`<span class="tag ${HEALTH[status] ?? ""}">${WORDS[status] ?? status.toLowerCase()}</span>`;
}

/** A p50 with its p90: never one without the other. */
export function Range({ p50, p90 }) {
  return html`<span class="nw">${span(p50)} <span class="dim">p90 ${span(p90)}</span></span>`;
}

/** Of Fairlead: a ring that leads a line. */
export const Mark = () => html`
  <svg viewBox="0 0 22 22" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round">
    <circle cx="11" cy="11" r="5" /><path d="M1 17c4 0 5-6 10-6s6-6 10-6" />
  </svg>`;
