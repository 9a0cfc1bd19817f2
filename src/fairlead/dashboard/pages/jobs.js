// Jobs: each as a track of its steps and waits, and one of them in full.
import { plural, shortId, since, span, time } from "../lib/format.js";
import { clock, overview } from "../lib/live.js";
import { usePages } from "../lib/pages.js";
import { queried } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Empty } from "../parts/empty.js";
import { Chips, Pinned, Search } from "../parts/filters.js";
import { JobDetail } from "../parts/job.js";
import { List } from "../parts/list.js";
import { Lede, Master, withFilters } from "../parts/master.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";
import { lengthOf, StepTrack } from "../parts/steps.js";

const STATES = [["", "All"], ["RUNNING", "Under way"], ["PENDING", "Not started"], ["FAILED", "Stopped"], ["COMPLETED", "Done"], ["CANCELLED", "Cancelled"]];
const COMPARED = 100; // jobs whose tracks have one scale
const EXAMPLE = `fl.pipeline("poster", ["enhance", "draw"])
fairlead job submit poster`;

export default function Jobs({ id }) {
  const params = { status: queried("status"), user_id: queried("user_id"), feature_name: queried("feature_name"), search: queried("q") };
  const found = usePages("/api/v1/jobs", params, { rowsOf: (answer) => answer.jobs, keyOf: (job) => job.id });
  const isFiltered = Object.values(params).some(Boolean);
  const lengths = (found.rows ?? []).slice(0, COMPARED).map(lengthOf).sort((a, b) => a - b);
  const longest = Math.max(1, lengths[Math.floor(0.8 * lengths.length)] ?? 1); // the very long ones are cut to the width
  const lede = html`
    <${Headline} />`;
  const filters = html`
    <div class="bar-top"><${Search} label="Search by pipeline, user or the beginning of an id" /></div>
    <div class="bar-top"><${Chips} label="State" name="status" options=${STATES} />
      <${Pinned} names=${[["feature_name", "pipeline"], ["user_id", "user"]]} /></div>`;
  const list = html`
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${found.rows === undefined ? !found.error && html`<${Waiting} rows=${6} />`
      : found.rows.length ? html`
        <${List} label="Jobs, the newest first" rows=${found.rows} keyOf=${(job) => job.id} columns="jb" height=${52}
          href=${(job) => withFilters(`/jobs/${job.id}`)} current=${id} onEnd=${found.more} row=${(job) => cells(job, longest)}
          head=${html`<span>Job</span><span>Steps and waits</span><span class="num">Ends</span>`} />`
      : isFiltered ? html`<${Empty} title="No job fits these filters."><a class="link" href="/jobs">Show all jobs</a><//>`
      : html`<${Empty} title="No job yet. A pipeline is a list of tasks:" command=${EXAMPLE} />`}`;
  return html`<${Master} lede=${lede} filters=${filters} list=${list} detail=${id && html`<${JobDetail} id=${id} key=${id} />`} />`;
}

function Headline() {
  const open = overview.value?.counts?.jobs;
  return html`<${Lede} title=${open === undefined || open === null ? "Jobs" : open === 0 ? "No job is under way." : `${plural(open, "job is", "jobs are")} under way.`}>
    Each runs the steps of a pipeline, one after another.<//>`;
}

function cells(job, longest) {
  return html`
    <span class="two"><b class="p ${job.priority[0]}"><span class="cut">${job.feature_name}</span><span class="vh">${job.priority}</span></b>
      <span class="dim cut">${job.user_id ?? "no user"} · <span class="mono">${shortId(job.id)}</span></span></span>
    <span><${StepTrack} job=${job} longest=${longest} /></span>
    <span class="two num"><${End} of=${job} /></span>`;
}

function End({ of: job }) {
  if (job.status === "FAILED") return html`<b class="bad">stopped</b><span class="dim">at step ${(job.error?.step ?? job.current_step_index) + 1}</span>`;
  if (job.status === "CANCELLED") return html`<b>cancelled</b><span class="dim">${time(job.completed_at, { seconds: false })}</span>`;
  if (job.status === "COMPLETED") return html`<b>${time(job.completed_at, { seconds: false })}</b><span class="dim">done</span>`;
  return html`<b>${Math.min(job.current_step_index + 1, job.total_steps)} of ${job.total_steps}</b><span class="dim">${span(since(job.queued_at, clock.value))} so far</span>`;
}
