// Workers: what each holds and when it was seen; drain one, or declare it dead.
import { may, path, post } from "../lib/api.js";
import { plural, shortId, since, span, time } from "../lib/format.js";
import { clock } from "../lib/live.js";
import { usePages } from "../lib/pages.js";
import { queried } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Confirm } from "../parts/confirm.js";
import { Empty } from "../parts/empty.js";
import { Chips, Search } from "../parts/filters.js";
import { List } from "../parts/list.js";
import { Ask, Detail, Lede, Master, withFilters } from "../parts/master.js";
import { Health } from "../parts/marks.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";
import { Facts } from "../parts/table.js";

const STATES = [["", "All"], ["active", "Active"], ["draining", "Draining"], ["dead", "Dead"]];
const SILENT = 15; // s; a heartbeat is due every 10 s
const MOST_CELLS = 24;

const ageOf = (worker) => since(worker.seen_at, clock.value);

export default function Workers({ id }) {
  const found = usePages("/api/v1/workers", {}, {
    rowsOf: (answer) => answer.workers,
    keyOf: (worker) => worker.worker_id,
    all: Boolean(queried("q") || queried("state") || id),
  });
  const lede = html`
    <${Headline} workers=${found.rows} isWhole=${found.isWhole} />`;
  const filters = html`
    <div class="bar-top"><${Search} label="Search by name, id, capability or type" /></div>
    <div class="bar-top"><${Chips} label="State" name="state" options=${STATES} /></div>`;
  const list = html`
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${found.rows === undefined ? !found.error && html`<${Waiting} rows=${5} />` : html`<${Rows} ...${found} id=${id} />`}`;
  const chosen = id && found.rows?.find((worker) => worker.worker_id === id);
  const gone = id && found.rows && found.isWhole && !chosen && html`<${Detail} title=${shortId(id)} back="/workers" backTitle="Workers"
    sub="No such worker was seen within the last hour." />`;
  return html`<${Master} lede=${lede} filters=${filters} list=${list} detail=${chosen ? html`<${Worker} worker=${chosen} key=${id} />` : gone} />`;
}

function Headline({ workers, isWhole }) {
  if (!workers) return html`<${Lede} title="Workers" />`;
  const active = workers.filter((worker) => worker.status === "active");
  const silent = active.filter((worker) => ageOf(worker) > SILENT).length;
  const [used, capacity] = [active.reduce((sum, one) => sum + one.current_load, 0), active.reduce((sum, one) => sum + one.capacity, 0)];
  if (!active.length) return html`<${Lede} title="No worker is alive, so nothing can start." />`;
  return html`
    <${Lede} title="${plural(active.length, "worker", "workers")}${isWhole ? "" : " or more"} hold${active.length === 1 ? "s" : ""} ${used} of ${plural(capacity, "slot")}.">
      ${silent ? html`<b class="warn">${silent} silent</b> for more than ${SILENT} s; the leases of a worker end when it stays silent.`
        : "All have been heard within the last seconds."}
    <//>`;
}

function Rows({ rows, id, isWhole, more }) {
  const text = queried("q").toLowerCase();
  const state = queried("state");
  const shown = rows.filter((worker) => (!state || worker.status === state)
    && [worker.worker_id, worker.name, ...worker.capabilities, ...(worker.task_types ?? [])].some((one) => one.toLowerCase().includes(text)));
  if (!rows.length) return html`<${Empty} title="No worker is alive, so nothing can start:" command="fairlead worker app:fl" />`;
  if (!shown.length && isWhole) return html`<${Empty} title="No worker fits these filters."><a class="link" href="/workers">Show all workers</a><//>`;
  return html`
    <${List} label="Workers" rows=${shown} keyOf=${(worker) => worker.worker_id} columns="wk" height=${48} current=${id} onEnd=${more}
      href=${(worker) => withFilters(`/workers/${encodeURIComponent(worker.worker_id)}`)} row=${cells}
      head=${html`<span>Worker</span><span>Load</span><span class="num">Seen</span><span class="num">Runs</span>`} />`;
}

function cells(worker) {
  const offers = [...worker.capabilities, ...(worker.task_types ? [plural(worker.task_types.length, "type")] : ["all types"])].join(", ");
  return html`
    <span class="two"><b><${Alive} of=${worker} /></b><span class="dim cut">${offers}</span></span>
    <span><${Load} of=${worker} /></span>
    <span class="num ${tone(worker)}">${worker.status === "dead" ? "dead" : span(ageOf(worker))}</span>
    <span class="num nw">${worker.current_load} of ${worker.capacity}</span>`;
}

const tone = (worker) => (worker.status === "dead" ? "bad" : ageOf(worker) > SILENT ? "warn" : "dim");

function Alive({ of: worker }) {
  const state = worker.status === "dead" ? "bad" : ageOf(worker) > SILENT ? "warn" : worker.status === "draining" ? "off" : "good";
  return html`<${Health} state=${state}><span class="cut">${worker.name || shortId(worker.worker_id)}</span>
    <span class="vh">${worker.status}</span>${worker.status === "draining" && html` <span class="tag">draining</span>`}<//>`;
}

/** A cell for each slot: filled when it runs something, in violet outline when it is kept for high priority. */
function Load({ of: worker }) {
  const cells = Math.min(worker.capacity, MOST_CELLS);
  const words = `${worker.current_load} of ${worker.capacity} slots used, ${worker.reserve} kept for high priority`;
  const free = worker.capacity - worker.current_load;
  const kind = (i) => (i < worker.current_load ? "n" : i >= cells - Math.min(worker.reserve, free) ? "r" : "o");
  return html`
    <span class="load" role="img" aria-label=${words}>${Array.from({ length: cells }, (_, i) => html`<i class=${kind(i)}></i>`)}</span>
    ${worker.capacity > MOST_CELLS && html`<span class="dim"> +${worker.capacity - MOST_CELLS}</span>`}`;
}

function Worker({ worker }) {
  const asked = useSignal(null);
  const close = () => { asked.value = null; };
  const drains = may("admin") && worker.status === "active";
  const actions = html`
    ${drains && html`<${Ask} asked=${asked} name="drain">Drain…<//>`}
    ${may("admin") && html`<${Ask} asked=${asked} name="expire" danger>Declare dead…<//>`}`;
  const state = worker.status === "dead" ? `Dead: last seen at ${time(worker.seen_at)}.`
    : `${worker.status === "draining" ? "Draining: it gets no more tasks. " : ""}Seen ${span(ageOf(worker))} ago, runs ${worker.current_load} of ${worker.capacity}.`;
  return html`
    <${Detail} title=${worker.name || shortId(worker.worker_id)} sub=${state} back="/workers" backTitle="Workers" actions=${actions}>
      ${asked.value === "drain" && html`<${Drain} worker=${worker} onClose=${close} />`}
      ${asked.value === "expire" && html`<${Expire} worker=${worker} onClose=${close} />`}
      <${Facts} of=${[
        ["Id", html`<span class="mono">${worker.worker_id}</span>`],
        ["Slots", `${worker.capacity}, of which ${worker.reserve} are kept for high priority`],
        ["Capabilities", worker.capabilities.join(", ") || "none"],
        ["Task types", worker.task_types ? worker.task_types.join(", ") : "all"],
        ["Version", worker.version],
      ]} />
    <//>`;
}

function Drain({ worker, onClose }) {
  return html`
    <${Confirm} title="Drain this worker?" verb="Drain the worker" keep="Keep it working" asksReason onClose=${onClose}
      act=${(reason) => post(path`/api/v1/workers/${worker.worker_id}/drain`, { reason })}>
      <p>It gets no more tasks, and stops when it has finished the ${plural(worker.current_load, "task")} that it runs. It does not come back by itself.</p>
    <//>`;
}

function Expire({ worker, onClose }) {
  const alive = worker.status !== "dead" && ageOf(worker) < SILENT;
  return html`
    <${Confirm} title="Is this worker certainly dead?" verb="Declare it dead" keep="Leave it" danger asksReason onClose=${onClose}
      act=${(reason) => post(path`/api/v1/workers/${worker.worker_id}/expire`, { reason })}>
      <p>Its ${plural(worker.current_load, "lease")} end now, and its tasks are queued again.${alive
        ? ` It was heard ${span(ageOf(worker))} ago: if it still runs, its tasks run twice.` : ""}</p>
    <//>`;
}
