// The same facts as the chart, as rows: for screen readers, and for copying.
import { path } from "../../lib/api.js";
import { time } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Priority } from "../../parts/marks.js";
import { Table } from "../../parts/table.js";

export function ForecastTable({ forecast }) {
  const rows = forecast.limits.flatMap((limit) =>
    limit.tracks.flatMap((track) => track.runs.map((run) => ({ limit: limit.name, slot: track.slot + 1, ...run }))));
  return html`
    <div class="astable"><${Table} label="Who holds each limit, and who is next" rows=${rows} keyOf=${(run) => `${run.limit}${run.slot}${run.task_id ?? run.start_p50}`} columns=${[
      { title: "Limit", cell: (run) => run.limit },
      { title: "Slot", num: true, hide: true, cell: (run) => run.slot },
      { title: "Who", cell: (run) => (run.task_id ? html`<a class="link" href=${path`/tasks/${run.task_id}`}>${run.user_id ?? run.task_type}</a>` : run.foreign ? "another tenant" : "a lease") },
      { title: "Type", cell: (run) => run.task_type ?? "–", hide: true },
      { title: "Priority", cell: (run) => html`<${Priority} of=${run.priority} />` },
      { title: "State", cell: (run) => (run.state === "running" ? "runs" : "expected") },
      { title: "Start p50", num: true, cell: (run) => time(run.start_p50) },
      { title: "p90", num: true, hide: true, cell: (run) => time(run.start_p90) },
      { title: "End p50", num: true, cell: (run) => time(run.end_p50) },
      { title: "p90", num: true, hide: true, cell: (run) => time(run.end_p90) },
    ]} /></div>`;
}
