// Dead letters: what failed for good and why; run it again, corrected if need be, or delete it.
import { may } from "../lib/api.js";
import { count, time } from "../lib/format.js";
import { overview } from "../lib/live.js";
import { usePages } from "../lib/pages.js";
import { queried, setQuery } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { DeadLetter, Many } from "../parts/deadletter.js";
import { Empty } from "../parts/empty.js";
import { Chips, Pinned, Search } from "../parts/filters.js";
import { List } from "../parts/list.js";
import { Ask, Lede, Master, withFilters } from "../parts/master.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";

const STATES = [["", "All"], ["dead_letter", "Out of retries"], ["failed", "Not retried"]];
const FILTERS = ["status", "task_type", "user_id", "code"];

export default function DeadLetters({ id }) {
  const asked = useSignal(null);
  const wanted = { ...Object.fromEntries(FILTERS.map((name) => [name, queried(name)])), text: queried("q") };
  const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value));
  const found = usePages("/api/v1/dlq", wanted, { rowsOf: (answer) => answer.tasks, keyOf: (task) => task.task_id });
  const acts = may("admin") && found.rows?.length > 0;
  const close = () => { asked.value = null; };
  const lede = html`
    <${Headline} />`;
  const filters = html`
    <div class="bar-top"><${Search} label="Search in the message of the error" /></div>
    <div class="bar-top"><${Chips} label="Why" name="status" options=${STATES} />
      <${Pinned} names=${[["task_type", "type"], ["user_id", "user"], ["code", "code"]]} />
      ${acts && html`<div class="btns right">
        <${Ask} asked=${asked} name="replay">Replay ${Object.keys(given).length ? "these" : "all"}…<//>
        <${Ask} asked=${asked} name="purge" danger>Delete ${Object.keys(given).length ? "these" : "all"}…<//></div>`}</div>
    ${acts && asked.value && html`<${Many} act=${asked.value} wanted=${given} rows=${found.rows} isWhole=${found.isWhole} onClose=${close} key=${asked.value} />`}`;
  const list = html`
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${found.rows === undefined ? !found.error && html`<${Waiting} rows=${6} />`
      : found.rows.length ? html`
        <${List} label="Dead letters, the latest first" rows=${found.rows} keyOf=${(task) => task.task_id} columns="dl" height=${52} current=${id}
          href=${(task) => withFilters(`/dead-letters/${task.task_id}`)} onEnd=${found.more} row=${cells}
          head=${html`<span>Task</span><span>Error</span><span class="num">Ended</span>`} />`
      : Object.keys(given).length ? html`<${Empty} title="No dead letter fits these filters."><a class="link" href="/dead-letters">Show all dead letters</a><//>`
      : html`<${Empty} title="What fails for good is kept here with its error, to be corrected and run again." />`}`;
  return html`<${Master} lede=${lede} filters=${filters} list=${list} detail=${id && html`<${DeadLetter} id=${id} key=${id} pin=${(name, value) => setQuery({ [name]: value })} />`} />`;
}

function Headline() {
  const number = overview.value?.counts?.dead_letters;
  const title = number === undefined || number === null ? "Dead letters" : number === 0 ? "Nothing failed for good."
    : `${count(number)} ${number === 1 ? "task" : "tasks"} failed for good.`;
  return html`<${Lede} title=${title}>They are kept for a while, and can be run again when the cause is gone.<//>`;
}

function cells(task) {
  return html`
    <span class="two"><b class="p ${task.priority[0]}"><span class="cut">${task.task_type}</span><span class="vh">${task.priority}</span></b>
      <span class="dim cut">${task.user_id ?? "no user"}${task.job_id ? " · step of a job" : ""}</span></span>
    <span class="two"><span class="bad cut">${task.error?.code ?? "no error"}</span><span class="dim cut">${task.error?.message}</span></span>
    <span class="two num"><b>${time(task.completed_at, { seconds: false })}</b><span class="dim">${task.status === "failed" ? "not retried" : `${task.attempt} runs`}</span></span>`;
}
