// Whether what happens reaches the history: said only when it does not.
import { plural, span } from "../../lib/format.js";
import { html } from "../../lib/ui.js";

const LATE = 60; // s

export function Recorded({ stats }) {
  const { history_lag_seconds: lag, unrecorded_events: waiting, lost_events: lost } = stats;
  if (lag === null) return null; // there is no history
  return html`
    ${lost > 0 && html`<p class="bad" role="alert"><b>${plural(lost, "event")} lost:</b> they left the store before they were recorded.</p>`}
    ${lag >= LATE && html`<p class="bad" role="alert"><b>The history is ${span(lag)} behind:</b> ${plural(waiting, "event")} not recorded yet.</p>`}`;
}
