// Now: what waits, what decides the pace, and who is next.
import { plural, span } from "../lib/format.js";
import { overview } from "../lib/live.js";
import { Figure } from "../parts/figure.js";
import { Empty } from "../parts/empty.js";
import { Waiting } from "../parts/notice.js";
import { html } from "../lib/ui.js";

const SUBMIT = `curl -H 'Content-Type: application/json' ${location.origin}/api/v1/tasks -d '{"task_type": "draw"}'`;

export default function Now() {
  if (!overview.value) return html`<${Waiting} rows=${4} />`;
  const { stats } = overview.value;
  const waiting = Object.values(stats.queues).reduce((sum, queue) => sum + queue.depth, 0);
  const running = stats.workers.used_capacity;
  if (waiting + running + stats.delayed === 0) {
    return html`<${Empty} title="Nothing waits and nothing runs. Submit a first task:" command=${SUBMIT} />`;
  }
  return html`
    <div class="lede"><div><h1>${plural(waiting, "task waits", "tasks wait")}, ${running} ${running === 1 ? "runs" : "run"}.</h1></div></div>
    <div class="figs">
      ${["high", "medium", "low"].map((priority) => html`
        <${Figure} key=${priority} label=${priority} mark=${priority[0]} value=${stats.queues[priority].depth} unit="wait"
          aside=${stats.queues[priority].depth > 0 && `oldest ${span(stats.queues[priority].oldest_age_seconds)}`} />`)}
      <${Figure} label="Ended" aside="last minute" value=${stats.throughput.completed_last_minute} unit="completed">
        <b>${stats.throughput.failed_last_minute}</b> failed
      <//>
    </div>`;
}
