// The title of a task, and what may be done with it: cancel, replay, follow.
import { del, may, path, post } from "../../lib/api.js";
import { useKeys } from "../../lib/keys.js";
import { go } from "../../lib/router.js";
import { html, useSignal } from "../../lib/ui.js";
import { Confirm } from "../../parts/confirm.js";
import { withFilters } from "../../parts/master.js";
import { Priority, Status } from "../../parts/marks.js";
import { ENDED } from "../task.js";

export function Actions({ task, title }) {
  const asked = useSignal(null);
  const isOpen = !ENDED.includes(task.status);
  const cancels = isOpen && may("cancel");
  const replays = ["failed", "dead_letter"].includes(task.status) && may("admin");
  const followed = task.job_id ?? task.task_id;
  const close = () => { asked.value = null; };
  useKeys({
    ...(cancels && { c: ["cancel this task", () => { asked.value = "cancel"; }] }),
    ...(replays && { r: ["replay this task", () => { asked.value = "replay"; }] }),
    ...(isOpen && { f: ["follow it on the page Now", () => go(`/?follow=${followed}`)] }),
    Escape: ["back to the tasks", () => (asked.peek() ? close() : go(withFilters("/tasks")))],
  });
  return html`
    <div class="lede">
      <h1>${title} ${" "}<span class="tag"><${Priority} of=${task.effective_priority ?? task.priority} /></span>${" "}<${Status} of=${task.status} />
        ${task.attempt > 1 && html`${" "}<span class="tag">try ${task.attempt} of ${task.max_retries + 1}</span>`}</h1>
      <div class="btns">
        ${isOpen && html`<a class="btn" href="/?follow=${followed}">Follow <kbd>f</kbd></a>`}
        ${replays && html`<button class="btn" aria-expanded=${asked.value === "replay"} onClick=${() => { asked.value = "replay"; }}>Replay… <kbd>r</kbd></button>`}
        ${cancels && html`<button class="btn danger" aria-expanded=${asked.value === "cancel"} onClick=${() => { asked.value = "cancel"; }}>Cancel… <kbd>c</kbd></button>`}
      </div>
    </div>
    ${asked.value === "cancel" && html`
      <${Confirm} title="Cancel ${title}?" verb="Cancel the task" keep="Let it be" danger onClose=${close} act=${() => del(path`/api/v1/tasks/${task.task_id}`)}>
        <p>${consequence(task)} A cancelled task is not retried.</p>
      <//>`}
    ${asked.value === "replay" && html`
      <${Confirm} title="Replay ${title}?" verb="Replay the task" keep="Leave it" asksReason onClose=${close}
        act=${(reason) => post(path`/api/v1/dlq/${task.task_id}/replay`, { reason })}>
        <p>It is queued again with all its retries${task.job_id ? ", and its job is resumed" : ""}. What it has done before is not undone.</p>
      <//>`}`;
}

function consequence(task) {
  if (task.status === "executing") return "It runs: its handler is stopped, and what it has done so far is not undone.";
  return task.job_id ? "It waits; its job ends as cancelled." : "It waits, and will never start.";
}
