// One dead letter, and what can be done with one or many.
import { del, may, path, post } from "../lib/api.js";
import { plural, shortId, time, workerName } from "../lib/format.js";
import { useResource } from "../lib/live.js";
import { useKeys } from "../lib/keys.js";
import { go } from "../lib/router.js";
import { html, useId, useSignal } from "../lib/ui.js";
import { Confirm } from "./confirm.js";
import { Ask, Detail, Section, withFilters } from "./master.js";
import { Shown } from "./notice.js";
import { Facts } from "./table.js";
import { Traceback } from "./traceback.js";

const MOST = 1_000; // of one act

export function DeadLetter({ id, pin }) {
  const found = useResource(path`/api/v1/dlq/${id}`);
  const back = { back: "/dead-letters", backTitle: "Dead letters" };
  if (!found.data) return html`<${Detail} title=${shortId(id)} ...${back}><${Shown} resource=${found} rows=${4}>${() => null}<//><//>`;
  return html`<${Letter} task=${found.data} back=${back} pin=${pin} />`;
}

function Letter({ task, back, pin }) {
  const asked = useSignal(null);
  const close = () => { asked.value = null; };
  const acts = may("admin");
  useKeys({ r: ["replay", () => { asked.value = "replay"; }] }, acts);
  const actions = acts && html`
    <${Ask} asked=${asked} name="replay" hint="r">Replay…<//>
    ${!task.job_id && html`<${Ask} asked=${asked} name="purge" danger>Delete…<//>`}`;
  const pinned = (name, value) => html`<button class="plain" onClick=${() => pin(name, value)}>${value}</button>`;
  return html`
    <${Detail} title=${task.task_type} sub=${html`<a class="link mono" href=${`/tasks/${task.task_id}`}>${shortId(task.task_id)}</a> · ended ${time(task.completed_at)}`} ...${back} actions=${actions}>
      ${asked.value === "replay" && html`<${Replay} task=${task} onClose=${close} />`}
      ${asked.value === "purge" && html`<${Purge} task=${task} onClose=${close} />`}
      <p class="say">${task.why}</p>
      ${task.error?.message && html`<p class="error bad">${task.error.message}</p>`}
      <${Facts} top of=${[
        ["Type", pinned("task_type", task.task_type)], ["Code", task.error && pinned("code", task.error.code)],
        ["User", task.user_id && pinned("user_id", task.user_id)], ["Tenant", task.tenant],
        ["Runs", task.attempt], ["Last worker", workerName(task.assigned_worker_id)],
        ["Step of job", task.job_id && html`<a class="link mono" href=${`/jobs/${task.job_id}`}>${shortId(task.job_id)}</a>`],
      ]} />
      ${task.error?.traceback && html`<${Section} title="Traceback of the last run"><${Traceback} text=${task.error.traceback} /><//>`}
      <${Section} title="Parameters"><details class="fold"><summary>Show</summary>
        <pre tabindex="0" aria-label="Parameters of the task">${JSON.stringify(task.parameters, null, 2)}</pre></details><//>
    <//>`;
}

/** With its parameters in a field, as text: what was changed is sent, else nothing is. */
function Replay({ task, onClose }) {
  const id = useId();
  const given = JSON.stringify(task.parameters, null, 2);
  const text = useSignal(given);
  const problem = problemOf(text.value);
  const act = async (reason) => {
    const body = text.value === given ? undefined : { parameters: JSON.parse(text.value) };
    await post(path`/api/v1/dlq/${task.task_id}/replay`, { body, reason });
    go(withFilters("/dead-letters"));
  };
  return html`
    <${Confirm} title="Run it again?" verb="Replay the task" asksReason act=${act} onClose=${onClose} disabled=${Boolean(problem)}>
      <p>${task.job_id ? "Its job is resumed, and all failed steps run again with all their retries."
        : "It is queued with all its retries, behind what waits already."}</p>
      ${!task.job_id && html`
        <label for="${id}-parameters">Parameters</label>
        <textarea class="field code" id="${id}-parameters" rows="8" spellcheck=${false} value=${text.value} aria-invalid=${Boolean(problem)}
          onInput=${(event) => { text.value = event.target.value; }}></textarea>
        <p class=${problem ? "bad" : "sub"} role="status">${problem || (text.value === given ? "Change them, if they were the cause." : "Changed.")}</p>`}
    <//>`;
}

function problemOf(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? null : "Parameters are an object: {…}.";
  } catch (error) {
    return error.message;
  }
}

function Purge({ task, onClose }) {
  const act = async (reason) => {
    await del(path`/api/v1/dlq/${task.task_id}`, { reason });
    go(withFilters("/dead-letters"));
  };
  return html`
    <${Confirm} title="Delete this dead letter?" verb="Delete it for good" danger asksReason act=${act} onClose=${onClose}>
      <p>Its record, its error and its output are gone then. This cannot be undone.</p>
    <//>`;
}

/** `wanted`: the filters of the list; without any, all are meant. */
export function Many({ act, wanted, rows, isWhole, onClose }) {
  const known = isWhole ? plural(rows.length, "dead letter") : `up to ${plural(MOST, "dead letter")}`;
  const which = Object.entries(wanted).map(([name, value]) => `${name.replace("_", " ")} ${value}`).join(", ");
  const isReplay = act === "replay";
  const body = { ...wanted, limit: MOST };
  return html`
    <${Confirm} title="${isReplay ? "Replay" : "Delete"} ${known}?" verb="${isReplay ? "Replay" : "Delete"} ${known}" danger=${!isReplay} asksReason
      onClose=${onClose} act=${(reason) => post(`/api/v1/dlq/${act}`, { body, reason })}>
      <p>${which ? `Those with ${which}.` : "All of them, of every type."} ${isReplay
        ? "Each is queued with all its retries; the jobs of steps are resumed."
        : "Steps of jobs are kept as long as their job. This cannot be undone."}</p>
    <//>`;
}
