// One job: why it waits, its steps on a time axis, where the time went, and what one step hands to the next.
import { del, may, path, post } from "../lib/api.js";
import { shortId, span, time } from "../lib/format.js";
import { clock, useResource } from "../lib/live.js";
import { useKeys } from "../lib/keys.js";
import { html, useSignal } from "../lib/ui.js";
import { Confirm } from "./confirm.js";
import { Explain } from "./explain.js";
import { Ask, Detail, Section } from "./master.js";
import { Status } from "./marks.js";
import { Shown } from "./notice.js";
import { StepChart } from "./stepchart.js";
import { stepsOf, TimeStack } from "./steps.js";
import { Table } from "./table.js";

const ENDED = new Set(["COMPLETED", "CANCELLED", "FAILED"]);

export function JobDetail({ id }) {
  const job = useResource(path`/api/v1/jobs/${id}`);
  if (!job.data) return html`<${Detail} title="Job ${shortId(id)}" back="/jobs" backTitle="Jobs"><${Shown} resource=${job} rows=${4}>${() => null}<//><//>`;
  return html`<${Job} job=${job.data} />`;
}

function Job({ job }) {
  const asked = useSignal(null);
  const explanation = useResource(path`/api/v1/jobs/${job.id}/explain`);
  const ahead = useResource(ENDED.has(job.status) ? null : `${path`/api/v1/forecast?follow=${job.id}`}&seconds=86400`);
  const cancels = may("cancel") && !ENDED.has(job.status);
  const resumes = job.status === "FAILED" && may(job.error?.retryable ? "submit" : "admin");
  useKeys({ c: ["cancel this job", () => { asked.value = "cancel"; }] }, cancels);
  const actions = html`
    ${resumes && html`<${Ask} asked=${asked} name="resume">Resume…<//>`}
    ${cancels && html`<${Ask} asked=${asked} name="cancel" danger hint="c">Cancel…<//>`}`;
  return html`
    <${Detail} title="${job.feature_name}${job.user_id ? ` for ${job.user_id}` : ""}" back="/jobs" backTitle="Jobs" actions=${actions} sub=${html`<${Sub} job=${job} />`}>
      ${asked.value === "cancel" && html`<${CancelJob} job=${job} onClose=${() => { asked.value = null; }} />`}
      ${asked.value === "resume" && html`<${ResumeJob} job=${job} onClose=${() => { asked.value = null; }} />`}
      ${explanation.data && html`<${Explain} sentence=${explanation.data.sentence} />`}
      <${StepChart} job=${job} follow=${ahead.data?.follow} />
      <${Section} title="Where the time goes"><${TimeStack} job=${job} /><//>
      <${Section} title="Steps"><${Steps} job=${job} follow=${ahead.data?.follow} /><//>
      <${Section} title="Context" sub="what one step hands to the next"><${Context} job=${job} /><//>
    <//>`;
}

function Sub({ job }) {
  const end = job.status === "COMPLETED" ? `Done at ${time(job.completed_at)}.`
    : job.status === "CANCELLED" ? `Cancelled at ${time(job.completed_at)}.`
    : job.status === "FAILED" ? `Stopped at step ${(job.error?.step ?? 0) + 1} of ${job.total_steps}.`
    : `Step ${Math.min(job.current_step_index + 1, job.total_steps)} of ${job.total_steps}.`;
  const estimate = !ENDED.has(job.status) && job.estimate;
  const at = (seconds) => time(clock.value + 1000 * seconds);
  return html`<span class="mono dim">${shortId(job.id)}</span> · ${end}${estimate &&
    html` Done about <b>${at(estimate.p50_seconds)}</b>, nine times in ten by ${at(estimate.p90_seconds)}.`}`;
}

function CancelJob({ job, onClose }) {
  const open = job.steps.filter((step) => ["queued", "executing", "delayed", "pending"].includes(step.status)).length;
  return html`
    <${Confirm} title="Cancel this job?" verb="Cancel the job" keep="Let it go on" danger onClose=${onClose}
      act=${(reason) => del(path`/api/v1/jobs/${job.id}`, { reason })}>
      <p>${open === 1 ? "1 step" : `${open} steps`} will not run or be stopped. What is done stays in the context. This cannot be undone.</p>
    <//>`;
}

function ResumeJob({ job, onClose }) {
  const force = !job.error?.retryable;
  return html`
    <${Confirm} title="Resume at step ${(job.error?.step ?? 0) + 1}?" verb="Resume the job" onClose=${onClose} asksReason=${force}
      act=${(reason) => post(`${path`/api/v1/jobs/${job.id}/resume`}${force ? "?force=true" : ""}`, { reason })}>
      <p>The step runs again with all its retries; the steps before it are not repeated.</p>
      ${force && html`<p>Its error says that it would fail again: resume it if the cause is gone.</p>`}
    <//>`;
}

function Steps({ job, follow }) {
  const expected = new Map((follow?.steps ?? []).map((step) => [step.index, step]));
  const columns = [
    { title: "Step", cell: (step) => html`<a class="link" href=${`/tasks/${step.task_id}`}>${step.name}</a>` },
    { title: "State", cell: (step) => html`<${StepState} step=${step} expected=${expected.get(step.index)} />` },
    { title: "Waited", num: true, hide: true, cell: (step) => span(step.waited) },
    { title: "Took", num: true, cell: (step) => span(step.ran) },
    { title: "Runs", num: true, cell: (step) => step.attempts },
  ];
  return html`<${Table} label="Steps of the job" columns=${columns} rows=${stepsOf(job, clock.value)} keyOf=${(step) => step.index} />`;
}

function StepState({ step, expected }) {
  if (step.status === "pending") {
    const needs = expected?.limits?.length ? ` for ${expected.limits.join(", ")}` : "";
    return html`<span class="mut">comes later${needs && `, then waits${needs}`}</span>`;
  }
  return html`<${Status} of=${step.status} />`;
}

/** Results may be private or large: they are shown when somebody asks. */
function Context({ job }) {
  const parts = [["input", job.input_data], ...Object.entries(job.context).filter(([name]) => !name.endsWith("__attempts"))];
  return html`${parts.map(([name, value]) => html`
    <details key=${name} class="fold"><summary><span class="mono">${name}</span>
      <span class="dim">${name === "input" ? " from the submit" : " "}</span></summary>
      <pre tabindex="0" aria-label=${name}>${JSON.stringify(value, null, 2)}</pre></details>`)}
    ${job.error && html`<p class="bad error">${job.error.code}: ${job.error.message}</p>`}`;
}
