// Tasks: all of them, the newest first, live.
import { plural, share, shortId, since, span, time, workerName } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { clock, overview } from "../lib/live.js";
import { usePages } from "../lib/pages.js";
import { queried, setQuery } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Empty } from "../parts/empty.js";
import { Chips, Pinned, Search, Select } from "../parts/filters.js";
import { List } from "../parts/list.js";
import { Lede, withFilters } from "../parts/master.js";
import { Priority, Status } from "../parts/marks.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";

const SUBMIT = `curl -H 'Content-Type: application/json' ${location.origin}/api/v1/tasks -d '{"task_type": "draw"}'`;
const STATES = [
  ["", "All"], ["executing", "Run"], ["queued", "Wait"], ["delayed", "Start later"], ["completed", "Completed"],
  ["failed", "Failed"], ["dead_letter", "Dead letters"], ["cancelled", "Cancelled"],
];
const PRIORITIES = [["", "Any priority"], ["high", "High"], ["medium", "Medium"], ["low", "Low"]];
const FILTERS = ["status", "priority", "task_type", "user_id"];

const nextPriority = (now) => PRIORITIES[(PRIORITIES.findIndex(([value]) => value === now) + 1) % PRIORITIES.length][0];

export default function Tasks() {
  const params = Object.fromEntries(FILTERS.map((name) => [name, queried(name)]));
  const found = usePages("/api/v1/tasks", { ...params, search: queried("q") }, {
    rowsOf: (answer) => answer.tasks,
    keyOf: (task) => task.task_id,
  });
  useKeys({ p: ["next priority", () => setQuery({ priority: nextPriority(params.priority) })] });
  const isFiltered = Boolean(queried("q") || FILTERS.some((name) => params[name]));
  return html`
    <${Headline} />
    <div class="bar-top">
      <${Search} label="Search by type, user or the beginning of an id" />
      <${Select} label="Priority" name="priority" options=${PRIORITIES} />
    </div>
    <div class="bar-top"><${Chips} label="State" name="status" options=${STATES} />
      <${Pinned} names=${[["task_type", "type"], ["user_id", "user"]]} /></div>
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${found.rows === undefined ? !found.error && html`<${Waiting} rows=${8} />`
      : found.rows.length ? html`<${Rows} ...${found} />`
      : isFiltered ? html`<${Empty} title="No task fits these filters."><a class="link" href="/tasks">Show all tasks</a><//>`
      : html`<${Empty} title="No task yet. Submit a first one:" command=${SUBMIT} />`}`;
}

function Headline() {
  if (!overview.value) return html`<${Lede} title="Tasks" />`;
  const { stats } = overview.value;
  const waiting = Object.values(stats.queues).reduce((sum, queue) => sum + queue.depth, 0);
  const running = stats.workers.used_capacity;
  const { completed_last_minute: completed, failed_last_minute: failed } = stats.throughput;
  return html`
    <${Lede} title="${running + waiting === 0 ? "Nothing runs and nothing waits." : `${plural(running, "task runs", "tasks run")}, ${waiting || "none"} wait${waiting > 1 ? "" : "s"}.`}">
      In the last minute <b>${completed}</b> completed${failed > 0 && html` and <b class="bad">${failed}</b> failed`}${
      stats.delayed > 0 && html`; <b>${stats.delayed}</b> start later`}.
    <//>`;
}

function Rows({ rows, isWhole, hasGap, more }) {
  return html`
    ${hasGap && html`<p class="sub" role="status">Tasks come faster than they can be listed: some between the first rows and the others are missing. Filter them, or reload.</p>`}
    <${List} label="Tasks, the newest first" rows=${rows} keyOf=${(task) => task.task_id} columns="tk" height=${48}
      href=${(task) => withFilters(`/tasks/${task.task_id}`)} onEnd=${more} row=${cells}
      head=${html`<span>Task</span><span>State</span><span class="hide-s">Limits</span><span class="hide-m">Id</span><span class="num">Time</span>`} />
    ${!isWhole && html`<p class="sub below">${rows.length.toLocaleString("en")} rows so far; scroll for more.</p>`}`;
}

function cells(task) {
  return html`
    <span class="two"><b class="p ${task.effective_priority[0]}"><span class="cut">${task.task_type}</span><span class="vh">${task.effective_priority}</span></b>
      <span class="dim cut">${task.user_id ?? "no user"}${task.job_id && " · step of a job"}</span></span>
    <span class="state"><${Status} of=${task.status} /><span class="dim cut">${detailOf(task)}</span></span>
    <span class="mut cut hide-s">${Object.keys(task.limits).join(", ")}</span>
    <span class="dim mono hide-m">${shortId(task.task_id)}</span>
    <span class="two num"><${Times} of=${task} /></span>`;
}

function detailOf(task) {
  if (task.status === "executing") {
    const progress = task.progress && [task.progress.fraction > 0 && share(task.progress.fraction), task.progress.message].filter(Boolean).join(" ");
    return [workerName(task.assigned_worker_id), progress].filter(Boolean).join(" · ");
  }
  if (task.error && task.status !== "completed") return task.error.code;
  if (task.retry_count > 0) return `attempt ${task.attempt}`;
  return task.effective_priority !== task.priority ? `promoted from ${task.priority}` : "";
}

/** The number that matters in its state, and what it is. */
function Times({ of: task }) {
  const now = clock.value;
  if (task.status === "executing") return html`<b>${span(since(task.started_at, now))}</b><span class="dim">so far</span>`;
  if (task.status === "delayed") return html`<b>${span((Date.parse(task.run_at) - now) / 1000)}</b><span class="dim">until it starts</span>`;
  if (task.status === "queued") {
    if (!task.estimate) return html`<b>${span(since(task.created_at, now))}</b><span class="dim">waited so far</span>`;
    return html`<b>in ${span(task.estimate.p50_seconds)}</b><span class="dim">p90 ${span(task.estimate.p90_seconds)}</span>`;
  }
  const took = task.started_at && task.completed_at && (Date.parse(task.completed_at) - Date.parse(task.started_at)) / 1000;
  return html`<b>${took === null ? "never ran" : span(took)}</b><span class="dim">${time(task.completed_at)}</span>`;
}
