// The steps of a job in a row: filled what ran, dotted what waited, outlined what comes.
import { span } from "../lib/format.js";
import { clock } from "../lib/live.js";
import { html } from "../lib/ui.js";

const SHORTEST = 25; // percent of the width: a job of a moment is still seen
const LEAST = 6; // percent of the track: a step of a moment is still seen
const OPEN = new Set(["pending", "queued", "delayed"]);

const ms = (moment) => (moment ? Date.parse(moment) : null);

/** Each step as { name, kind, waited, ran }, in seconds; what is not known is null. */
export function stepsOf(job, now) {
  return job.steps.map((step) => {
    const started = ms(step.started_at);
    const ran = started === null ? null : ((ms(step.completed_at) ?? now) - started) / 1000;
    const waits = step.status === "queued" || step.status === "delayed";
    const kind = step.status === "executing" ? "lv" : step.status === "failed" || step.status === "dead_letter" ? "x"
      : step.status === "completed" ? "ok" : step.status === "cancelled" ? "gone" : "nx";
    return { ...step, kind, ran: OPEN.has(step.status) ? null : ran, waited: step.waited_seconds, waits };
  });
}

/** The track of a row in a list, where that of the `longest` has the whole width. */
export function StepTrack({ job, longest }) {
  const steps = stepsOf(job, clock.value);
  const parts = partsOf(steps);
  const total = lengthOf(job);
  const words = steps.map((step) => `${step.name} ${step.status}`).join(", ");
  return html`
    <div class="steps ${job.priority[0]}" role="img" aria-label=${words} style=${{ width: `${Math.max(SHORTEST, Math.min(100, (100 * total) / longest))}%` }}>
      ${parts.map((part) => html`<i class=${part.kind} style=${{ flex: `${Math.max(LEAST, (100 * part.seconds) / total)} 1 0` }}></i>`)}
    </div>`;
}

/** In seconds; a step that has not run counts as long as the others. */
export const lengthOf = (job) => partsOf(stepsOf(job, clock.value)).reduce((sum, part) => sum + part.seconds, 0);

function partsOf(steps) {
  const known = steps.map((step) => step.ran ?? 0);
  const usual = Math.max(1, known.reduce((sum, ran) => sum + ran, 0) / Math.max(1, known.filter(Boolean).length));
  return steps.flatMap((step) => [
    step.waited > 0.5 && { kind: "w", seconds: step.waited },
    { kind: step.kind, seconds: step.ran ?? usual },
  ]).filter(Boolean);
}

/** Where the time of a job went, from its submit until now. */
export function TimeStack({ job }) {
  const parts = stepsOf(job, clock.value).flatMap((step) => [
    step.waited > 0 && { kind: "wt", seconds: step.waited },
    step.ran > 0 && { kind: step.kind === "x" ? "failed" : "", seconds: step.ran },
  ]).filter(Boolean);
  const sum = (kind) => parts.filter((part) => (part.kind === "wt") === kind).reduce((all, part) => all + part.seconds, 0);
  const [waited, ran] = [sum(true), sum(false)];
  if (waited + ran === 0) return html`<p class="sub">Nothing has run yet.</p>`;
  return html`
    <div class="stack tall ${job.priority[0]}" role="img" aria-label="Runs and waits in order">
      ${parts.map((part) => html`<i class=${part.kind} style=${{ width: `${(100 * part.seconds) / (waited + ran)}%` }}></i>`)}
    </div>
    <p class="sub">Filled: runs ${span(ran)}. Dotted: waits ${span(waited)}.</p>`;
}
