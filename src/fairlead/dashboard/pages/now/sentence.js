// One sentence about the followed task or job: whom it waits for, when it goes on, when it is done.
import { path } from "../../lib/api.js";
import { ms, soon, span } from "../../lib/format.js";
import { clock, useResource } from "../../lib/live.js";
import { html } from "../../lib/ui.js";
import { runsOf } from "./choice.js";

const ENDED = ["completed", "failed", "cancelled", "dead_letter"];

export function Sentence({ followed, forecast, id, onNext }) {
  const { steps } = followed;
  const step = steps.find((one) => !ENDED.includes(one.status));
  const isJob = steps.length > 1 || runsOf(forecast).some((run) => run.job_id === id);
  const job = useResource(isJob ? path`/api/v1/jobs/${id}` : null, { every: 4_900 }).data;
  const who = job?.user_id ?? whose(forecast, id);
  const href = isJob ? path`/jobs/${id}` : path`/tasks/${id}`;
  const what = isJob ? job?.feature_name ?? "job" : steps[0]?.name;
  const name = who ? `${who}’s ${what}` : isJob ? `The ${what}` : `The task ${what}`;
  return html`
    <div class="follow">
      <i class="ringi" aria-hidden="true"></i>
      <p><a href=${href}><b>${name}</b></a> <${Words} step=${step} steps=${steps} forecast=${forecast} /></p>
      <button class="btn sm" onClick=${onNext}>Follow another <kbd>f</kbd></button>
    </div>`;
}

function Words({ step, steps, forecast }) {
  if (!step) return html`<span class="mut">is done.</span>`;
  const last = steps.findLast((one) => one.end_p50);
  const done = last && html` <span class="mut">Done about</span> <b>${soon(last.end_p50, clock.value)}</b><span class="mut">, nine times in ten by ${soon(last.end_p90, clock.value)}.</span>`;
  if (step.status === "executing") {
    const next = steps.find((one) => one.index > step.index && one.start_p50);
    const wait = next && (ms(next.start_p50) - ms(step.end_p50)) / 1000;
    return html`<span class="mut">runs${steps.length > 1 && ` ${step.name}`}${next && wait > 1 ? html`, then waits <b class="ink">${span(wait)}</b> for ${next.limits[0] ?? "a worker"}` : ""}.</span>${done}`;
  }
  const wait = step.start_p50 && (ms(step.start_p50) - clock.value) / 1000;
  const holder = holderOf(forecast, step);
  return html`
    <span class="mut">${step.limits.length ? "waits" : "waits for a worker"} </span>${wait > 0 && html`<b>${span(wait)}</b> `}
    <span class="mut">${step.limits.length > 0 && `for ${step.limits.join(" and ")}`}${holder && `: ${holder}`}.</span>${done}`;
}

/** Who holds the limit of a step now, and how many are before it. */
function holderOf(forecast, step) {
  const limit = forecast.limits.find((one) => one.name === step.limits[0]);
  if (!limit) return "";
  const runs = limit.tracks.flatMap((track) => track.runs);
  const holders = [...new Set(runs.filter((run) => run.state === "running").map((run) => run.user_id).filter(Boolean))];
  const before = runs.filter((run) => run.state === "expected" && step.start_p50 && ms(run.start_p50) < ms(step.start_p50)).length;
  const hold = holders.length ? `${holders.slice(0, 3).join(", ")} ${holders.length === 1 ? "holds" : "hold"} it` : "";
  const ahead = before ? `${before} ${before === 1 ? "is" : "are"} ahead` : "";
  return [hold, ahead].filter(Boolean).join(", and ");
}

const whose = (forecast, id) => runsOf(forecast).find((run) => run.task_id === id || run.job_id === id)?.user_id;
