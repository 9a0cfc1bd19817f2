// Now: what waits, what decides the pace, and who is next.
import { isOperator } from "../lib/api.js";
import { overview, useResource } from "../lib/live.js";
import { html } from "../lib/ui.js";
import { Empty } from "../parts/empty.js";
import { Waiting } from "../parts/notice.js";
import { Figures } from "./now/figures.js";
import { Headline } from "./now/headline.js";
import { NowAndNext } from "./now/next.js";
import { Recorded } from "./now/recorded.js";
import { Promotions, WaitedFor, Workers } from "./now/tables.js";

const SUBMIT = `curl -H 'Content-Type: application/json' ${location.origin}/api/v1/tasks -d '{"task_type": "draw"}'`;

export default function Now() {
  const limits = useResource("/api/v1/limits?sort=pressure&limit=8", { every: 900 });
  const workers = useResource(isOperator() ? "/api/v1/workers?limit=50" : null, { every: 1_900 });
  if (!overview.value) return html`<${Waiting} rows=${4} />`;
  const { stats } = overview.value;
  const waiting = Object.values(stats.queues).reduce((sum, queue) => sum + queue.depth, 0);
  const recorded = isOperator() && html`<${Recorded} stats=${stats} />`;
  if (waiting + stats.workers.used_capacity + stats.delayed === 0) {
    return html`${recorded}<${Empty} title="Nothing waits and nothing runs. Submit a first task:" command=${SUBMIT} />`;
  }
  return html`
    ${recorded}
    <${Headline} stats=${stats} limits=${limits.data} workers=${workers.data} />
    <${Figures} stats=${stats} />
    <${NowAndNext} limits=${limits.data} />
    <div class="beside">
      <div><${WaitedFor} limits=${limits.data} /><${Promotions} /></div>
      ${isOperator() && html`<div><${Workers} found=${workers} /></div>`}
    </div>`;
}
