// Depth and age of each priority, throughput, and whether estimates held: now, and in the last hour.
import { isOperator } from "../../lib/api.js";
import { count, share, span } from "../../lib/format.js";
import { useResource } from "../../lib/live.js";
import { html } from "../../lib/ui.js";
import { Figure, Sparkline } from "../../parts/figure.js";

const PLOTTED = 60; // points of a line

export function Figures({ stats }) {
  const series = useResource(isOperator() ? "/api/v1/queue/series" : null, { every: 9_500 });
  const points = pooled(series.data?.points ?? []);
  return html`
    <div class="figs">
      ${["high", "medium", "low"].map((priority) => html`<${OfPriority} key=${priority} priority=${priority} queue=${stats.queues[priority]} points=${points} />`)}
      <${Throughput} stats=${stats} points=${points} every=${series.data?.every_seconds} />
      <${Kept} estimates=${stats.estimates} />
    </div>`;
}

function OfPriority({ priority, queue, points }) {
  const p50 = points.map((point) => point.waits[priority]?.p50_seconds ?? null);
  const p95 = points.map((point) => point.waits[priority]?.p95_seconds ?? null);
  const last = points.findLast((point) => point.waits[priority])?.waits[priority];
  const spark = html`<${Sparkline} values=${p50} upper=${p95} tone=${priority[0]} label="How long ${priority} waited, in the last hour" />`;
  const name = priority[0].toUpperCase() + priority.slice(1);
  return html`
    <${Figure} label=${name} mark=${priority[0]} value=${queue.depth} unit="wait" spark=${spark}
      aside=${queue.depth > 0 ? `oldest ${span(queue.oldest_age_seconds)}` : ""}>
      ${last ? html`<span class="nw">waited p50 <b>${span(last.p50_seconds)}</b></span><span class="hide-s"> · </span><span class="nw">p95 <b>${span(last.p95_seconds)}</b></span>`
        : "nobody has waited lately"}
    <//>`;
}

function Throughput({ stats, points }) {
  const { completed_last_minute: completed, failed_last_minute: failed } = stats.throughput;
  const values = points.map((point) => (60 * point.ended) / point.seconds);
  return html`
    <${Figure} label="Throughput" aside="last hour" value=${completed + failed} unit="per min"
      spark=${html`<${Sparkline} values=${values} label="Tasks that ended, in the last hour" />`}>
      <b>${count(sum(points, "ended"))}</b> ended · <b>${count(sum(points, "failed"))}</b> failed
    <//>`;
}

/** The share of starts within the p90 that was given: 90 % is right, and more is too careful. */
function Kept({ estimates }) {
  const known = estimates.coverage_p90 !== null;
  const [number, unit] = known ? share(estimates.coverage_p90).split(" ") : ["–", ""];
  const drawing = known && html`
    <svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true" class="kept">
      <path class="ax" d="M0 14H100" /><path class="aim" d="M${scale(0.85)} 14H${scale(0.95)}" />
      <path class="ink" d="M${scale(estimates.coverage_p90)} 5V23" />
    </svg>`;
  return html`
    <${Figure} label="Kept estimates" aside="aim 85 to 95" value=${number} unit=${unit} spark=${drawing}>
      ${known ? "of starts came by the p90 we gave" : "no start was estimated in this hour"}
    <//>`;
}

/** From 70 % to 100 %: less is at the left edge. */
const scale = (part) => Math.max(0, Math.min(100, ((part - 0.7) / 0.3) * 100));

/** As many points as a line has room for; each the worst or the sum of those it stands for. */
function pooled(points) {
  const size = Math.max(1, Math.ceil(points.length / PLOTTED));
  const groups = [];
  for (let i = 0; i < points.length; i += size) groups.push(points.slice(i, i + size));
  return groups.map((group) => ({
    seconds: sum(group, "seconds"),
    ended: sum(group, "completed") + sum(group, "failed"),
    failed: sum(group, "failed"),
    waits: Object.fromEntries(["high", "medium", "low"].map((priority) => [priority, worst(group, priority)])),
  }));
}

const sum = (points, name) => points.reduce((all, point) => all + point[name], 0);

function worst(group, priority) {
  const known = group.map((point) => point.waits[priority]).filter(Boolean);
  return known.length ? known.reduce((a, b) => (a.p95_seconds >= b.p95_seconds ? a : b)) : null;
}
