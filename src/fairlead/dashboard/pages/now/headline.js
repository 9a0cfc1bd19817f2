// The sentence that names what decides the pace, and what needs somebody.
import { ms, plural, since, span, time } from "../../lib/format.js";
import { clock, overview } from "../../lib/live.js";
import { html } from "../../lib/ui.js";

const SILENT = 15; // seconds

export function Headline({ stats, limits, workers }) {
  const waiting = Object.values(stats.queues).reduce((sum, queue) => sum + queue.depth, 0);
  const dead = overview.value.counts.dead_letters;
  const silent = (workers?.workers ?? []).find((one) => one.status === "active" && since(one.seen_at, clock.value) > SILENT);
  return html`
    <div class="lede">
      <div>
        <h1>${pace(stats, limits?.limits ?? [], waiting)}</h1>
        <p>
          <b>${stats.workers.used_capacity}</b> run, <b>${waiting}</b> wait${stats.delayed > 0 && html`, <b>${stats.delayed}</b> start later`}${
            dead > 0 && html`, <a class="link bad" href="/dead-letters">${plural(dead, "dead letter")}</a>`}.
          ${silent && html` Worker <b>${silent.name || silent.worker_id}</b> has been silent for ${span(since(silent.seen_at, clock.value))}.`}
        </p>
      </div>
    </div>`;
}

/** The limit whose last task starts latest decides; a paused one holds everybody who needs it. */
function pace(stats, limits, waiting) {
  const paused = limits.find((limit) => limit.paused && limit.waiting > 0);
  const latest = limits
    .filter((limit) => limit.waiting > 0 && limit.pressure?.last_start_p50)
    .sort((a, b) => ms(b.pressure.last_start_p50) - ms(a.pressure.last_start_p50))[0];
  if (stats.workers.active === 0 && waiting > 0) return `No worker is alive, so ${plural(waiting, "task")} cannot start.`;
  if (latest) return limitSentence(latest);
  if (paused) return `${paused.name} is paused: ${plural(paused.waiting, "task waits", "tasks wait")} for it.`;
  if (waiting === 0) return `Nothing waits: ${plural(stats.workers.used_capacity, "task runs", "tasks run")}.`;
  if (stats.workers.total_capacity && stats.workers.used_capacity >= stats.workers.total_capacity) {
    return `The workers decide the pace: all ${stats.workers.total_capacity} slots are taken, and ${plural(waiting, "task waits", "tasks wait")}.`;
  }
  return `${plural(waiting, "task waits", "tasks wait")}.`;
}

function limitSentence(limit) {
  const many = limit.waiting === 1 ? "1 waits" : `${limit.waiting} wait`;
  const what = limit.kind === "rate" ? `its ${limit.rate}` : limit.limit === 1 ? "its one slot" : `its ${limit.limit} slots`;
  const until = time(limit.pressure.last_start_p50, { seconds: false });
  const last = limit.waiting === 1 ? "until about" : "the last until about";
  return `${limit.name} decides the pace: ${many} for ${what}, ${last} ${until}.`;
}
