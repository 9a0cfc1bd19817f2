// Now and next: the limits with the longest waits, and one task or job followed through them.
import { withQuery } from "../../lib/api.js";
import { plural, since, span } from "../../lib/format.js";
import { useKeys } from "../../lib/keys.js";
import { clock, connection, overview, useResource } from "../../lib/live.js";
import { queried, setQuery } from "../../lib/router.js";
import { html, useRef, useSignal } from "../../lib/ui.js";
import { Chart, followedBy } from "../../parts/chart.js";
import { ProblemNotice, Waiting } from "../../parts/notice.js";
import { Sentence } from "./sentence.js";
import { ForecastTable } from "./forecast-table.js";
import { runsOf, useFollowed, useTop } from "./choice.js";

const WINDOWS = [["120", "2 min"], ["600", "10 min"], ["3600", "1 h"]];
const UNKNOWN = new Set(["unknown_task", "unknown_job", "invalid_input"]); // what is said of the id in an old link

export function NowAndNext({ limits }) {
  const seconds = Number(WINDOWS.find(([value]) => value === queried("window"))?.[0] ?? WINDOWS[0][0]);
  const asTable = useSignal(false);
  const choice = useFollowed();
  const lost = useSignal(null);
  const id = choice.id === lost.value ? null : choice.id;
  const shown = useTop(limits, choice.limits);
  const address = limits ? withQuery("/api/v1/forecast", { limits: shown.join(","), seconds, follow: id }) : null;
  const { data, error } = useResource(address);
  if (id && UNKNOWN.has(error?.code)) lost.value = id;
  const latest = useRef(null);
  if (data) latest.current = data;
  const forecast = latest.current;
  choice.see(forecast, data, choice.id !== id);
  const ended = useResource("/api/v1/tasks?status=completed&limit=200", { live: false }); // what the window has not seen
  const followed = forecast?.follow && id ? { ...forecast.follow, priority: priorityOf(forecast, id) } : null;
  const next = () => choice.next(forecast);
  const window = (step) => {
    const at = WINDOWS.findIndex(([value]) => Number(value) === seconds);
    setQuery({ window: WINDOWS[Math.max(0, Math.min(WINDOWS.length - 1, at + step))][0] });
  };
  useKeys({
    f: ["follow another, or the one in focus", () => choice.next(forecast, followedBy(document.activeElement))],
    "[": ["a shorter window", () => window(-1)],
    "]": ["a longer window", () => window(1)],
  });
  if (error && !forecast) return html`<section class="panel"><${ProblemNotice} error=${error} /></section>`;
  const rows = forecast && rowsOf(forecast, limits);
  if (rows?.length === 0) return null;
  return html`
    <section class="panel nn" aria-label="Now and next">
      <div class="hd">
        <h2>Now and next</h2>
        <${Legend} />
        <div class="seg" role="group" aria-label="Window">
          ${WINDOWS.map(([value, words]) => html`
            <button aria-pressed=${Number(value) === seconds ? "true" : "false"} onClick=${() => setQuery({ window: value })}>${words}</button>`)}
        </div>
      </div>
      ${followed && html`<${Sentence} followed=${followed} forecast=${forecast} id=${id} onNext=${next} />`}
      ${choice.isGiven && !id && html`<${NotKept} onNext=${next} />`}
      ${!forecast ? html`<${Waiting} rows=${3} />` : asTable.value ? html`<${ForecastTable} forecast=${forecast} />` : html`
        <${Chart} limits=${rows} followed=${followed} ended=${ended.data?.tasks} seconds=${seconds} now=${clock.value}
          stale=${connection.value.state === "stale"} label="Who holds each limit, and who is next" />`}
      <div class="fine">
        <span>${shown.length ? `${shown.length} of ${plural(overview.value?.counts.limits ?? shown.length, "limit")}, those that make somebody wait longest.` : "No limit is in use."}</span>
        <span>${forecast?.at ? `Estimated ${span(since(forecast.at, clock.value))} ago` : "Nothing is estimated yet"} · ${" "}
          <button class="plain" onClick=${() => { asTable.value = !asTable.value; }}>${asTable.value ? "Show as a chart" : "Show as a table"}</button>
        </span>
      </div>
    </section>`;
}

const Legend = () => html`
  <div class="legend" aria-hidden="true">
    <span><i class="run"></i>runs</span><span><i class="strip m"></i>hand-over, p50 to p90</span><span><i class="next"></i>expected next</span>
    <span class="dim hide-s">·</span>
    <span class="p h">high</span><span class="p m">medium</span><span class="p l">low</span>
  </div>`;

const NotKept = ({ onNext }) => html`
  <div class="follow" role="status">
    <p class="mut">What was followed is not known, or is not kept any more.</p>
    <button class="btn sm" onClick=${onNext}>Follow another <kbd>f</kbd></button>
  </div>`;

/** The limits, and all slots of the workers if these decide. How many wait now is known better than by the forecast. */
function rowsOf({ limits, workers }, found) {
  const known = new Map((found?.limits ?? []).map((limit) => [`${limit.tenant}/${limit.name}`, limit]));
  const rows = limits.map((limit) => {
    const { active, waiting } = known.get(`${limit.tenant}/${limit.name}`) ?? limit;
    return { ...limit, active, waiting };
  });
  const decide = workers && workers.limit > 0 && (workers.active >= workers.limit || !rows.length);
  return decide ? [...rows, workers] : rows;
}

const priorityOf = (forecast, id) => runsOf(forecast).find((run) => run.task_id === id || run.job_id === id)?.priority ?? "medium";
