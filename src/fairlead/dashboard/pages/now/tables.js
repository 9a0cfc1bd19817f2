// What is waited for, who works, and who moves up next.
import { path } from "../../lib/api.js";
import { hue, ms, since, span } from "../../lib/format.js";
import { clock, useResource } from "../../lib/live.js";
import { html } from "../../lib/ui.js";
import { Health, Priority } from "../../parts/marks.js";
import { Shown } from "../../parts/notice.js";
import { Table } from "../../parts/table.js";

const MOST_CELLS = 24;
const PRIORITIES = ["high", "medium", "low"];
const SILENT = 15; // seconds

export function WaitedFor({ limits }) {
  const rows = (limits?.limits ?? []).filter((limit) => limit.waiting > 0);
  if (!rows.length) return null;
  return html`
    <section class="panel">
      <div class="hd"><h2>What they wait for</h2><span class="sub">a task may wait for several</span></div>
      <${Table} label="What they wait for" rows=${rows} keyOf=${(limit) => `${limit.tenant}/${limit.name}`} columns=${[
        { title: "Limit", cell: (limit) => html`<a class="link" href=${path`/limits/${limit.tenant ? `${limit.tenant}/${limit.name}` : limit.name}`}>${limit.name}</a>` },
        { title: "Who waits", cell: (limit) => html`<${Waiters} limit=${limit} />` },
        { title: "Tasks", num: true, cell: (limit) => limit.waiting },
        { title: "Held", num: true, hide: true, cell: (limit) => (limit.kind === "rate" ? limit.rate : `${limit.active} of ${limit.limit}`) },
        { title: "Last in", num: true, cell: (limit) => (limit.paused ? html`<span class="warn">held</span>` : lastIn(limit)) },
      ]} />
    </section>`;
}

function lastIn(limit) {
  const last = limit.pressure?.last_start_p50;
  return last ? span((ms(last) - clock.value) / 1000) : html`<span class="dim" title="Nothing is known yet about how long such tasks run">no estimate</span>`;
}

/** A cell each; of many, cells in proportion. The forecast, which knows the priorities, may be seconds old. */
function Waiters({ limit }) {
  const known = limit.pressure?.waiting ?? {};
  const counts = PRIORITIES.map((priority) => known[priority] ?? 0);
  const extra = Math.max(0, limit.waiting - counts.reduce((sum, count) => sum + count, 0));
  const words = [...PRIORITIES.map((priority, i) => `${counts[i]} ${priority}`), extra > 0 && `${extra} that came just now`].filter(Boolean).join(", ");
  const per = Math.max(1, limit.waiting / MOST_CELLS);
  const cells = [...counts, extra].flatMap((count, i) => Array(Math.ceil(count / per)).fill(hue(PRIORITIES[i])));
  return html`
    <div class="stack q" role="img" aria-label=${words}>
      ${cells.slice(0, Math.ceil(limit.waiting / per)).map((kind, i) => html`<i class=${kind} key=${i}></i>`)}
    </div>`;
}

export function Workers({ found }) {
  return html`
    <section class="panel">
      <div class="hd"><h2>Workers</h2>${found.data?.workers.some((one) => one.reserve > 0) && html`<span class="sub">violet outline: kept for high</span>`}</div>
      <${Shown} resource=${found}>${({ workers }) => workers.length === 0
        ? html`<p class="mut">No worker is alive, so nothing can start: <code>fairlead worker app:fl</code></p>`
        : html`<${Table} label="Workers" rows=${workers.filter((one) => one.status !== "dead").slice(0, 12)} keyOf=${(worker) => worker.worker_id} columns=${[
            { title: "Worker", cell: (worker) => html`<${Health} state=${health(worker)}><span class="clip" title=${worker.worker_id}>${worker.name || worker.worker_id}</span><//>` },
            { title: "Load", cell: (worker) => html`<${Load} worker=${worker} />` },
            { title: "Seen", num: true, cell: (worker) => html`<span class=${health(worker) === "warn" ? "warn" : "mut"}>${span(since(worker.seen_at, clock.value))}</span>` },
            { title: "Runs", num: true, cell: (worker) => (worker.status === "draining" ? "draining" : `${worker.current_load} of ${worker.capacity}`) },
          ]} />`}<//>
    </section>`;
}

function health(worker) {
  if (worker.status === "draining") return "off";
  return since(worker.seen_at, clock.value) > SILENT ? "warn" : "good";
}

function Load({ worker }) {
  const { current_load: busy, capacity, reserve } = worker;
  const words = `${busy} of ${capacity}`;
  if (capacity > MOST_CELLS) {
    return html`<div class="usebar" role="img" aria-label=${words}><i style=${{ width: `${(100 * busy) / capacity}%` }}></i></div>`;
  }
  const kind = (i) => (i < busy ? "n" : i >= capacity - reserve ? "r" : "o");
  return html`<span class="load" role="img" aria-label=${words}>${Array.from({ length: capacity }, (_, i) => html`<i class=${kind(i)} key=${i}></i>`)}</span>`;
}

export function Promotions() {
  const found = useResource("/api/v1/queue/promotions?limit=5", { every: 4_900 });
  const rows = found.data?.promotions ?? [];
  if (!rows.length) return null;
  return html`
    <section class="panel">
      <div class="hd"><h2>Next promotions</h2><span class="sub">waiting long enough moves a task up</span></div>
      <${Table} label="Next promotions" rows=${rows} keyOf=${(row) => row.task_id} columns=${[
        { title: "Task", cell: (row) => html`<a class="link" href=${path`/tasks/${row.task_id}`}>${row.user_id ? `${row.user_id} · ` : ""}${row.task_type}</a>` },
        { title: "Moves", cell: (row) => html`<${Priority} of=${row.from_priority} bare /> <span class="dim">→</span> <${Priority} of=${row.to_priority} />` },
        { title: "When", num: true, cell: (row) => { const left = (ms(row.at) - clock.value) / 1000; return left > 0 ? `in ${span(left)}` : "now"; } },
      ]} />
    </section>`;
}
