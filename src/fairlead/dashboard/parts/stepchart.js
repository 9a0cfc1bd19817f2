// The steps of a job on a time axis: what ran is solid, what is expected is outlined, what waits is dotted.
import { ms, span, time } from "../lib/format.js";
import { clock } from "../lib/live.js";
import { html } from "../lib/ui.js";
import { useOneTabStop } from "./roving.js";

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800]; // s
const TICKS = 6;
const ROOM_FOR_CHIP = 12; // percent

export function StepChart({ job, follow }) {
  const now = clock.value;
  const oneTabStop = useOneTabStop();
  const rows = rowsOf(job, follow, now);
  const known = rows.flatMap((row) => [row.from, row.start, row.end, row.late]).filter(Boolean);
  if (!known.length) return null;
  const isOpen = rows.some((row) => row.state !== "done" && row.state !== "failed");
  const first = Math.min(...known);
  const last = Math.max(...known, first + 2_000, isOpen ? now : 0);
  const width = (last - first) * 1.06;
  const at = (instant) => (100 * (instant - first)) / width;
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Steps on a time axis">
      <div class="chart jobc ${job.priority[0]}" ...${oneTabStop}>
        <div class="axis" aria-hidden="true">
          ${ticks(first, last, now, isOpen).map(([instant, words]) => html`<span style=${{ left: `${at(instant)}%` }}>${words}</span>`)}
          ${isOpen && html`<span class="nowl" style=${{ left: `${at(now)}%` }}>${time(now)}</span>`}
        </div>
        <div class="rows">
          <div class="grid">${isOpen && html`<i class="past" style=${{ right: `${100 - at(now)}%` }}></i>`}
            ${ticks(first, last, now, isOpen).map(([instant]) => html`<i style=${{ left: `${at(instant)}%` }}></i>`)}</div>
          ${rows.map((row) => html`<${Row} key=${row.index} row=${row} at=${at} now=${now} priority=${job.priority[0]} />`)}
          <div class="over">${isOpen && html`<i class="now" style=${{ left: `${at(now)}%` }}></i>`}</div>
        </div>
      </div>
    </div>`;
}

function Row({ row, at, now, priority }) {
  const wide = (from, to) => ({ left: `${at(from)}%`, width: `${Math.max(0.4, at(to) - at(from))}%` });
  const until = row.start ?? (row.from ? now : null); // nobody knows when it starts: so far it has waited until now
  const waits = row.from && until - row.from > 500;
  return html`
    <div class="grp">
      <div class="gl"><a href=${`/tasks/${row.taskId}`}>${row.index + 1} ${row.name}</a><span>${row.limits.join(", ") || row.words}</span></div>
      <div class="tracks"><div class="tr">
        ${waits && html`<i class="waitline" style=${wide(row.from, until)}></i>
          ${at(until) - at(row.from) > ROOM_FOR_CHIP && html`<span class="chip" style=${{ left: `${(at(row.from) + at(until)) / 2}%` }}>${span((until - row.from) / 1000)}</span>`}`}
        ${row.start && row.end && html`
          ${row.late > row.end && html`<i class="strip ${priority}" style=${wide(row.end, row.late)}></i>`}
          <a class="bar ${row.state === "expected" ? "next" : row.state === "failed" ? "run broken" : "run"} ${priority} sel" href=${`/tasks/${row.taskId}`}
            style=${wide(row.start, row.end)} title=${row.title} aria-label=${row.title} tabindex="-1" data-task=${row.taskId}><span class="t"><span class="u">${span((row.end - row.start) / 1000)}</span></span></a>`}
      </div></div>
    </div>`;
}

/** When each step waited, started and ended; or is expected to, with p90 as `late`. */
function rowsOf(job, follow, now) {
  const expected = new Map((follow?.steps ?? []).map((step) => [step.index, step]));
  let before = ms(job.queued_at);
  return job.steps.map((step) => {
    const ahead = expected.get(step.index) ?? {};
    const started = ms(step.started_at);
    const isDone = ["completed", "failed", "dead_letter", "cancelled"].includes(step.status);
    const runs = step.status === "executing";
    const start = started && (isDone || runs) ? started : ms(ahead.start_p50);
    const end = isDone ? ms(step.completed_at) : runs ? Math.max(now, ms(ahead.end_p50) ?? now) : ms(ahead.end_p50);
    const row = {
      index: step.index,
      name: step.name,
      taskId: step.task_id,
      limits: ahead.limits ?? [],
      words: step.status === "pending" ? "comes later" : step.status.replace("_", " "),
      from: step.status === "pending" && !start ? null : (ms(step.queued_at) ?? before),
      start,
      end,
      late: isDone ? null : ms(ahead.end_p90),
      state: isDone ? (step.status === "completed" ? "done" : "failed") : runs ? "runs" : "expected",
    };
    row.title = `${step.name}: ${row.state}${start ? `, from ${time(start)}` : ""}${end ? ` to ${time(end)}` : ""}${row.late ? `, p90 ${time(row.late)}` : ""}`;
    before = end ?? before;
    return row;
  });
}

/** Instants with their words: from now while the job is open, else by the clock. */
function ticks(first, last, now, isOpen) {
  const seconds = (last - first) / 1000;
  const step = STEPS.find((one) => seconds / one <= TICKS) ?? STEPS.at(-1);
  const zero = isOpen ? now : Math.ceil(first / (1000 * step)) * 1000 * step;
  const found = [];
  for (let k = Math.ceil((first - zero) / (1000 * step)); zero + k * 1000 * step <= last; k += 1) {
    if (isOpen && k === 0) continue;
    const instant = zero + k * 1000 * step;
    found.push([instant, isOpen ? `${k < 0 ? "−" : "+"}${span(Math.abs(k) * step)}` : time(instant, { seconds: step < 60 })]);
  }
  return found;
}
