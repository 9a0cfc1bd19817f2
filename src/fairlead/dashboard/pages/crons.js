// Crons: what is submitted by the clock, when it was last and when it is next.
import { plural, span, time } from "../lib/format.js";
import { clock } from "../lib/live.js";
import { usePages } from "../lib/pages.js";
import { queried } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Empty } from "../parts/empty.js";
import { Search } from "../parts/filters.js";
import { Lede } from "../parts/master.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";
import { Table } from "../parts/table.js";

const LATE = 60; // s after its time
const EXAMPLE = `@fl.cron("30 2 * * *", timezone="Europe/Berlin")
async def report(): ...`;

const left = (cron) => (Date.parse(cron.next_tick) - clock.value) / 1000;

export default function Crons() {
  const found = usePages("/api/v1/crons", {}, { rowsOf: (answer) => answer.crons, keyOf: (cron) => cron.name, all: true });
  return html`
    <${Headline} crons=${found.rows} />
    <div class="bar-top"><${Search} label="Search periodic tasks" /></div>
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${found.rows === undefined ? !found.error && html`<${Waiting} rows=${4} />` : html`<${Rows} crons=${found.rows} />`}`;
}

function Headline({ crons }) {
  if (!crons) return html`<${Lede} title="Crons" />`;
  const next = crons.filter((cron) => cron.next_tick).sort((a, b) => a.next_tick.localeCompare(b.next_tick))[0];
  if (!next) return html`<${Lede} title=${crons.length ? "No schedule is known yet." : "Nothing is submitted by the clock."} />`;
  const late = crons.filter((cron) => cron.next_tick && left(cron) < -LATE).length;
  return html`
    <${Lede} title=${left(next) < 0 ? `${next.name} is due.` : `${next.name} is next, in ${span(left(next))}.`}>
      ${plural(crons.length, "periodic task")}${late > 0 && html`, <b class="warn">${late} late</b>: no process submits ${late === 1 ? "it" : "them"}`}.
    <//>`;
}

function Rows({ crons }) {
  if (!crons.length) return html`<${Empty} title="No periodic task yet. One is a task with a schedule:" command=${EXAMPLE} />`;
  const text = queried("q").toLowerCase();
  const rows = crons.filter((cron) => cron.name.toLowerCase().includes(text)).sort((a, b) => (a.next_tick ?? "~").localeCompare(b.next_tick ?? "~"));
  if (!rows.length) return html`<${Empty} title="No periodic task fits."><a class="link" href="/crons">Show all</a><//>`;
  const columns = [
    { title: "Name", cell: (cron) => html`<b>${cron.name}</b>` },
    { title: "Schedule", cell: (cron) => (cron.schedule ? html`<span class="mono nw">${cron.schedule}</span>` : html`<span class="dim">not known yet</span>`) },
    { title: "Time zone", hide: true, cell: (cron) => html`<span class="mut">${cron.timezone ?? ""}</span>` },
    { title: "Last", num: true, hide: true, cell: (cron) => time(cron.last_tick) },
    { title: "Next", num: true, hide: true, cell: (cron) => time(cron.next_tick) },
    { title: "In", num: true, cell: (cron) => (!cron.next_tick ? "–" : left(cron) < -LATE ? html`<b class="warn">late ${span(-left(cron))}</b>` : html`<b>${span(left(cron))}</b>`) },
  ];
  return html`<div class="panel"><${Table} label="Periodic tasks" columns=${columns} rows=${rows} keyOf=${(cron) => cron.name} /></div>`;
}
