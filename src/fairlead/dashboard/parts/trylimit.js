// What another size of a limit would have done to the work of the last day, before it is applied.
import { span } from "../lib/format.js";
import { simulate } from "../lib/simulate.js";
import { html, useSignal } from "../lib/ui.js";
import { sizeBody } from "./limitform.js";
import { ProblemNotice } from "./notice.js";

export function TryLimit({ name, size }) {
  const state = useSignal({});
  const run = async () => {
    state.value = { busy: true };
    try {
      const answer = await simulate({ limits: { [name]: sizeBody(size.value) } });
      state.value = { answer };
    } catch (error) {
      state.value = { error };
    }
  };
  const { busy, answer, error } = state.value;
  return html`
    <div class="btns"><button class="btn sm" type="button" disabled=${busy} onClick=${run}>${busy ? "Simulating" : "Try it on the last day"}</button></div>
    ${error && html`<${ProblemNotice} error=${error} />`}
    ${answer && html`<${Compared} answer=${answer} />`}`;
}

/** The wait of all tasks, as it is and as it would be. */
export function Compared({ answer }) {
  const [before, after] = [answer.before, answer.after].map((measures) => measures?.waits.all?.p95);
  if (!answer.before) return html`<p class="sub">No task of the last day is known, so there is nothing to compare.</p>`;
  const longest = Math.max(before ?? 0, after ?? 0, 0.001);
  const bar = (words, wait, kind) => html`
    <div class=${kind}><span>${words}</span><i style=${{ width: `${(100 * (wait ?? 0)) / longest}%` }}></i><span>${wait === undefined ? "nothing started" : `p95 ${span(wait)}`}</span></div>`;
  return html`<div class="compare" role="status">${bar("as it is", before, "")}${bar("changed", after, "to")}
    <p class="sub">Waits of ${answer.tasks.toLocaleString("en")} tasks, simulated.</p></div>`;
}
