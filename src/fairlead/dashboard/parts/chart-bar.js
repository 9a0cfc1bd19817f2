// One run on a track: a bar, with as many words as it has room for.
import { path } from "../lib/api.js";
import { hue, time } from "../lib/format.js";
import { html } from "../lib/ui.js";

const LETTER = { small: 6.1, big: 7.1 }; // px, of the widest texts
const PADDING = 11;

/** A link, because a person wants to see the task behind it. What holds a slot late reaches to now. */
export function Bar({ run, row, slot, scale, now, selected, done }) {
  const start = Math.max(run.start, run.state === "expected" && now ? now : scale.from);
  const end = run.state === "running" ? Math.max(run.end, now ?? 0) : Math.max(run.shown ?? run.end, start);
  const kind = done ? "done" : run.state === "running" ? "run" : "next";
  const left = scale.x(start);
  const wide = Math.max(3, (end - start) * scale.perMs - 1.5);
  const style = { left: `${left}px`, width: `${wide}px`, top: `${row.middle(slot) - row.top - row.height / 2 + 1}px`, height: `${row.height - 2}px` };
  const who = run.user_id ?? (run.foreign ? "another tenant" : run.task_type ?? "a lease");
  const what = run.user_id ? run.task_type : null;
  const before = kind === "run" ? Math.min(wide, scale.nowX - scale.shift - left) : wide; // px left of the line of now
  const words = row.height > 6 && written(who, what, row.height > 40 ? LETTER.big : LETTER.small, before, wide);
  const classes = `bar ${kind} ${hue(run.priority)} ${selected ? "sel" : ""} ${row.height > 40 ? "big" : ""}`;
  const label = `${row.limit.name}: ${who}${what ? `, ${what}` : ""}${run.priority ? `, ${run.priority}` : ""}, ${sentence(run, done)}`;
  if (!run.task_id) return html`<span class=${classes} style=${style} title=${label}>${words}</span>`;
  return html`
    <a class=${classes} style=${style} href=${path`/tasks/${run.task_id}`} title=${label} aria-label=${label}
      tabindex="-1" data-task=${run.task_id} data-job=${run.job_id ?? undefined}>${words}</a>`;
}

/** On the wider side of now, and nothing that would be cut off: the tooltip and the table have it. */
function written(who, what, letter, before, wide) {
  const size = (text) => text.length * letter + PADDING;
  const room = Math.max(before, wide - before);
  const isBoth = what && size(`${who} · ${what}`) <= room;
  if (!isBoth && size(who) > room) return null;
  const style = before >= wide - before ? undefined : { paddingLeft: `${before + PADDING / 2}px` };
  return html`<span class="t" style=${style}>${who}${isBoth && html`<span class="x"> · ${what}</span>`}</span>`;
}

function sentence(run, done) {
  if (done) return `ran until ${time(run.end)}`;
  if (run.state === "running") return `runs since ${time(run.start)}, until about ${time(run.end)}, p90 ${time(run.end90)}`;
  return `starts about ${time(run.start)}, p90 ${time(run.start90)}`;
}
