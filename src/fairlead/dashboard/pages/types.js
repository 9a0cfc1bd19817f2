// Task types: how much of each waits and runs, and which are paused.
import { isOperator, may, path, put } from "../lib/api.js";
import { plural, span, time } from "../lib/format.js";
import { clock } from "../lib/live.js";
import { usePages } from "../lib/pages.js";
import { useKeys } from "../lib/keys.js";
import { queried } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Confirm } from "../parts/confirm.js";
import { Empty } from "../parts/empty.js";
import { Chips, Search } from "../parts/filters.js";
import { List } from "../parts/list.js";
import { Ask, Detail, Lede, Master, withFilters } from "../parts/master.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";
import { Facts } from "../parts/table.js";

const STATES = [["", "All"], ["busy", "Busy"], ["paused", "Paused"]];
const PRIORITIES = ["high", "medium", "low"];

/** How many wait; null: nobody knows now. */
const waitingOf = (type) => (type.waiting ? Object.values(type.waiting).reduce((sum, count) => sum + count, 0) : null);
const shown = (number) => (number === null || number === undefined ? "–" : number.toLocaleString("en"));

export default function Types({ name }) {
  const found = usePages("/api/v1/task-types", {}, {
    rowsOf: (answer) => answer.task_types,
    keyOf: (type) => type.task_type,
    all: Boolean(queried("q") || queried("state") || name),
  });
  const lede = html`
    <${Headline} types=${found.rows} isWhole=${found.isWhole} />`;
  const filters = html`
    <div class="bar-top"><${Search} label="Search task types" /></div>
    <div class="bar-top"><${Chips} label="State" name="state" options=${STATES} /></div>`;
  const list = html`
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${found.rows === undefined ? !found.error && html`<${Waiting} rows=${6} />` : html`<${Rows} types=${found.rows} name=${name} more=${found.more} />`}`;
  const chosen = name && (found.rows?.find((type) => type.task_type === name) ?? { task_type: name });
  return html`<${Master} lede=${lede} filters=${filters} list=${list} detail=${chosen && found.rows && html`<${Type} type=${chosen} key=${name} />`} />`;
}

function Headline({ types, isWhole }) {
  if (!types) return html`<${Lede} title="Task types" />`;
  const paused = types.filter((type) => type.paused);
  const title = !types.length ? "No task types yet."
    : paused.length === 1 ? `${paused[0].task_type} is paused.`
    : paused.length ? `${paused.length} of ${plural(types.length, "task type")} are paused.` : `${isWhole ? "All " : "More than "}${plural(types.length, "task type")} may start.`;
  return html`<${Lede} title=${title}>Those that code has declared, and those with tasks that wait or run.<//>`;
}

function Rows({ types, name, more }) {
  const text = queried("q").toLowerCase();
  const state = queried("state");
  const rows = types.filter((type) => type.task_type.toLowerCase().includes(text)
    && (!state || (state === "paused" ? type.paused : waitingOf(type) + (type.running ?? 0) > 0)));
  if (!types.length) return html`<${Empty} title="A type appears when code declares it, or when its first task is submitted." command="fairlead submit draw" />`;
  if (!rows.length) return html`<${Empty} title="No task type fits these filters."><a class="link" href="/types">Show all types</a><//>`;
  const most = Math.max(1, ...rows.map(waitingOf));
  return html`
    <${List} label="Task types" rows=${rows} keyOf=${(type) => type.task_type} columns="ty" current=${name} onEnd=${more}
      href=${(type) => withFilters(`/types/${encodeURIComponent(type.task_type)}`)} row=${(type) => cells(type, most)}
      head=${html`<span>Type</span><span class="hide-s">Who waits</span><span class="num">Wait</span><span class="num">Run</span>`} />`;
}

function cells(type, most) {
  const waiting = waitingOf(type);
  return html`
    <span class="cut"><b class=${waiting + (type.running ?? 0) ? "" : "light"}>${type.task_type}</b> ${type.paused && html`<span class="tag warn">paused</span>`}</span>
    <span class="hide-s"><${WaitBar} waiting=${type.waiting ?? {}} most=${most} /></span>
    <span class=${waiting ? "num" : "num dim"}>${shown(waiting)}</span>
    <span class=${type.running ? "num" : "num dim"}>${shown(type.running)}</span>`;
}

/** By priority; the width is the share of the busiest. */
export function WaitBar({ waiting, most }) {
  const words = PRIORITIES.filter((priority) => waiting[priority]).map((priority) => `${waiting[priority]} ${priority}`).join(", ");
  return html`
    <div class="stack" role="img" aria-label=${words || "none waits"}>
      ${[...PRIORITIES, "all"].map((priority) => waiting[priority] > 0 && html`
        <i class=${priority === "all" ? "n" : priority[0]} style=${{ width: `${(100 * waiting[priority]) / most}%` }}></i>`)}
    </div>`;
}

function Type({ type }) {
  const asked = useSignal(null);
  const pauses = may("admin") && isOperator();
  useKeys({ z: [type.paused ? "resume this type" : "pause this type", () => { asked.value = "pause"; }] }, pauses);
  const waiting = waitingOf(type);
  const since = type.paused_at && ` since ${time(type.paused_at)} (${span((clock.value - Date.parse(type.paused_at)) / 1000)})`;
  return html`
    <${Detail} title=${type.task_type} back="/types" backTitle="Types"
      sub=${type.paused ? `Paused${since ?? ""}: none of its tasks starts.` : waiting === null ? "How much of it waits is not known now."
        : waiting ? `${plural(waiting, "task waits", "tasks wait")}.` : "None of its tasks waits."}
      actions=${pauses && html`<${Ask} asked=${asked} name="pause" hint="z">${type.paused ? "Resume…" : "Pause…"}<//>`}>
      ${asked.value === "pause" && html`<${Pause} type=${type} waiting=${waiting} onClose=${() => { asked.value = null; }} />`}
      <${Facts} of=${[
        ...PRIORITIES.map((priority) => [`Waits, ${priority}`, type.waiting?.[priority]]),
        ["Waits", type.waiting?.all], ["Run", type.running],
      ]} />
      <p class="links"><a class="link" href=${`/tasks?task_type=${encodeURIComponent(type.task_type)}`}>Its tasks</a>
        <a class="link" href=${`/dead-letters?task_type=${encodeURIComponent(type.task_type)}`}>Its dead letters</a></p>
    <//>`;
}

function Pause({ type, waiting, onClose }) {
  const paused = !type.paused;
  const verb = `${paused ? "Pause" : "Resume"} ${type.task_type}`;
  const act = (reason) => put(path`/api/v1/task-types/${type.task_type}`, { body: { paused }, reason });
  return html`
    <${Confirm} title="${verb}?" verb=${verb} keep=${paused ? "Keep it going" : "Leave it paused"} asksReason act=${act} onClose=${onClose}>
      <p>${paused
        ? `${waiting === null ? "Its tasks wait" : plural(waiting, "task waits", "tasks wait")} until you resume it; new ones are accepted and wait too. What runs now goes on to its end.`
        : `${waiting === null ? "Its tasks" : plural(waiting, "task that waits", "tasks that wait")} may start again.`}</p>
    <//>`;
}
