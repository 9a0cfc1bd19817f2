// The runs that failed, the latest first: what went wrong, where, and what comes of it.
import { ms, span, time, workerName } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Traceback } from "../../parts/traceback.js";

/** `attempts`: as history has them; without it only the latest error is known. */
export function Attempts({ task, attempts, isOpen }) {
  const failed = (attempts ?? []).map((one, i) => ({ ...one, number: i + 1 })).filter((one) => one.error_code).reverse();
  const latest = task.error && { code: task.error.code, message: task.error.message, traceback: task.error.traceback };
  if (!latest && !failed.length) return null;
  const [newest, ...older] = failed;
  const title = !latest ? "It failed before" : isOpen ? `Try ${newest?.number ?? task.attempt} failed, it will be retried` : `It failed: ${latest.code}`;
  return html`
    <section class="panel c8">
      <div class="hd"><h2>${title}</h2><span class="sub">${newest ? circumstances(newest) : workerName(task.assigned_worker_id)}</span></div>
      ${latest && html`<${Problem} code=${latest.code} message=${latest.message} traceback=${latest.traceback ?? newest?.traceback} />`}
      ${(latest ? older : failed).map((one) => html`
        <details class="fold" key=${one.number}><summary>Try ${one.number}: <b>${one.error_code}</b> <span class="dim">${circumstances(one)}</span></summary>
          <${Problem} code=${one.error_code} message=${one.error} traceback=${one.traceback} /></details>`)}
    </section>`;
}

const circumstances = (one) =>
  [workerName(one.worker_id), time(one.started_at), one.ended_at && `ran ${span((ms(one.ended_at) - ms(one.started_at)) / 1000)}`].filter(Boolean).join(" · ");

function Problem({ code, message, traceback }) {
  if (traceback) return html`<${Traceback} text=${traceback} />`;
  return html`<pre tabindex="0" aria-label="Error"><span class="err">${message || code}</span></pre>`;
}
