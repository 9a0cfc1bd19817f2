// What a task is, apart from what happens to it.
import { path } from "../../lib/api.js";
import { ms, span, time, workerName } from "../../lib/format.js";
import { clock } from "../../lib/live.js";
import { html } from "../../lib/ui.js";
import { Priority } from "../../parts/marks.js";
import { Facts } from "../../parts/table.js";

export function TaskFacts({ task, explained }) {
  const limits = Object.entries(task.limits);
  const promotes = explained?.promotes_at && ms(explained.promotes_at) > clock.value;
  return html`
    <section class="panel c4">
      <h2>Facts</h2>
      <${Facts} of=${[
        ["Id", html`<span class="mono">${task.task_id}</span>`],
        ["Type", html`<a class="link" href=${path`/types/${task.task_type}`}>${task.task_type}</a>`],
        ["User", task.user_id],
        ["Tenant", task.tenant],
        ["Job", task.job_id && html`<a class="link" href=${path`/jobs/${task.job_id}`}>step ${task.step + 1}</a>`],
        ["Place in the queue", task.queue_position],
        ["Moves up", promotes && html`at ${time(explained.promotes_at)}`],
        ["Priority", task.effective_priority !== task.priority && html`<${Priority} of=${task.priority} /> → <${Priority} of=${task.effective_priority} />`],
      ]} />
      <${Facts} top of=${[
        ["Limits", limits.length ? limits.map(([name, units], i) => html`${i > 0 && ", "}<a class="link" href=${path`/limits/${name}`}>${name}</a> ${units}`) : null],
        ["Needs", task.required_capabilities.join(", ")],
        ["Time allowed", span(task.timeout_seconds)],
        ["Must start within", task.max_wait_seconds && span(task.max_wait_seconds)],
        ["Starts at", task.status === "delayed" ? time(task.run_at) : null],
        ["Tries", `${task.attempt} of ${task.max_retries + 1}${task.crash_count ? `, ${task.crash_count} crashed` : ""}`],
        ["Tier", task.tier],
        ["Worker", task.assigned_worker_id && html`<span title=${task.assigned_worker_id}>${workerName(task.assigned_worker_id)}</span>`],
        ["Fence", task.fence || null],
      ]} />
      <${Facts} top of=${[
        ["Trace", task.trace_id && html`<span class="mono">${task.trace_id}</span>`],
        ["Key", task.idempotency_key && html`<span class="mono">${task.idempotency_key}</span>`],
        ["Size", task.size_hint],
      ]} />
    </section>`;
}
