// The sentence that explains a task, and the one number that its owner asks for.
import { ms, since, span } from "../../lib/format.js";
import { clock } from "../../lib/live.js";
import { html } from "../../lib/ui.js";
import { Explain } from "../../parts/explain.js";

export function Hero({ task, explained, why, step }) {
  const answer = answerOf(task, step);
  return html`
    <div class="hero">
      <${Explain} sentence=${why ?? explained?.sentence ?? " "} names=${Object.keys(task.limits)} />
      ${answer && html`<div class="answer"><span>${answer.before}</span><b>${answer.number}</b><span>${answer.after}</span></div>`}
    </div>`;
}

function answerOf(task, step) {
  const now = clock.value;
  if (task.status === "executing") {
    if (!step?.end_p50 || ms(step.end_p50) < now) return { before: "runs for", number: span(since(task.started_at, now)), after: "" };
    return { before: "ends in about", number: span((ms(step.end_p50) - now) / 1000), after: `p90 ${span((ms(step.end_p90) - now) / 1000)}` };
  }
  if (task.status === "queued" || task.status === "delayed") {
    if (!task.estimate) return { before: "starts in", number: "?", after: "no estimate yet" };
    const passed = since(task.estimate.at, now);
    const left = (seconds) => span(Math.max(0, seconds - passed));
    return { before: "starts in about", number: left(task.estimate.p50_seconds), after: `p90 ${left(task.estimate.p90_seconds)}` };
  }
  if (!task.started_at || !task.completed_at) return null;
  return { before: "ran for", number: span((ms(task.completed_at) - ms(task.started_at)) / 1000), after: task.waited_seconds === null ? "" : `waited ${span(task.waited_seconds)}` };
}
