// Limits: those first that make tasks wait the longest; and one of them with its holders.
import { isOperator, may } from "../lib/api.js";
import { plural, span } from "../lib/format.js";
import { clock } from "../lib/live.js";
import { useKeys } from "../lib/keys.js";
import { usePages } from "../lib/pages.js";
import { queried } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Empty } from "../parts/empty.js";
import { Chips, Search, Select } from "../parts/filters.js";
import { fullName, LimitDetail } from "../parts/limit.js";
import { NewLimit } from "../parts/limitform.js";
import { List } from "../parts/list.js";
import { Ask, Lede, Master, withFilters } from "../parts/master.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";
import { SlotCells, UseBar } from "../parts/slots.js";

const STATES = [["", "All"], ["waiting", "Making wait"], ["full", "Full"], ["paused", "Paused"]];
const ORDERS = [["pressure", "Pressure first"], ["name", "By name"]];

export default function Limits({ name }) {
  const asked = useSignal(null);
  const params = { sort: queried("sort", "pressure"), state: queried("state"), search: queried("q") };
  const found = usePages("/api/v1/limits", params, { rowsOf: (answer) => answer.limits, keyOf: fullName });
  const creates = may("admin");
  useKeys({ n: ["new limit", () => { asked.value = "new"; }] }, creates);
  const longest = Math.max(1, ...(found.rows ?? []).map((limit) => pressureOf(limit, clock.value) ?? 0));
  const lede = html`
    <${Headline} first=${found.first} rows=${found.rows} isWhole=${found.isWhole} action=${creates && html`<${Ask} asked=${asked} name="new" primary hint="n">New limit<//>`} />
    ${asked.value === "new" && html`<${NewLimit} onClose=${() => { asked.value = null; }} />`}`;
  const filters = html`
    <div class="bar-top"><${Search} label=${found.first?.total ? `Search ${plural(found.first.total, "limit")}` : "Search limits"} />
      <${Select} label="Order" name="sort" options=${ORDERS} /></div>
    <div class="bar-top"><${Chips} label="State" name="state" options=${STATES} /></div>`;
  const list = html`
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${found.rows === undefined ? !found.error && html`<${Waiting} rows=${8} />`
      : found.rows.length ? html`
        <${List} label="Limits" rows=${found.rows} keyOf=${fullName} columns="lim" current=${name} onEnd=${found.more}
          href=${(limit) => withFilters(`/limits/${encodeURIComponent(fullName(limit))}`)} row=${(limit) => cells(limit, longest)}
          total=${found.first?.total} head=${html`<span>Limit</span><span>Slots</span><span class="num">Wait</span><span class="num">Pressure</span>`} />`
      : params.search || params.state ? html`<${Empty} title="No limit fits these filters."><a class="link" href="/limits">Show all limits</a><//>`
      : html`<${Empty} title="No limits yet: everything may run at once." command="fairlead limit set gpu --limit 1" />`}`;
  return html`<${Master} lede=${lede} filters=${filters} list=${list} detail=${name && html`<${LimitDetail} name=${name} key=${name} />`} />`;
}

function Headline({ first, rows, isWhole, action }) {
  if (!first) return html`<${Lede} title="Limits" action=${action} />`;
  // without a forecast only the rows that are here are known
  const seen = rows.filter((limit) => limit.waiting > 0).length;
  const waited = Math.max(first.waited_for ?? 0, seen);
  const number = `${waited.toLocaleString("en")}${first.waited_for === null && !isWhole ? " or more" : ""}`;
  const of = first.total ? ` of ${first.total.toLocaleString("en")}` : "";
  const title = first.total === 0 ? "Nothing is limited." : waited === 0 ? "No limit makes anybody wait."
    : waited === 1 ? `One${of} limits makes tasks wait.` : `${number}${of} limits make tasks wait.`;
  return html`<${Lede} title=${of || waited !== 1 ? title : "One limit makes tasks wait."} action=${action}>
    Pressure is how long it takes until the last task that waits now starts${isOperator() ? "" : ", by all tenants together"}.<//>`;
}

function cells(limit, longest) {
  const isBusy = limit.waiting > 0;
  const size = limit.rate ?? limit.limit.toLocaleString("en");
  return html`
    <span class="cut"><b class=${isBusy ? "" : "light"}>${limit.name}</b> <span class="dim">${size}${limit.tenant && isOperator() ? ` · ${limit.tenant}` : ""}</span></span>
    <span>${isPaused(limit) ? html`<span class="tag warn">paused</span>` : html`<${Use} of=${limit} />`}</span>
    <span class=${isBusy ? "num" : "num dim"}>${limit.waiting.toLocaleString("en")}</span>
    <span><${Pressure} of=${limit} longest=${longest} /></span>`;
}

export const isPaused = (limit) => limit.paused || (limit.kind === "slots" && limit.limit === 0);

function Use({ of: limit }) {
  if (limit.kind === "rate") {
    const taken = Math.max(0, limit.limit - limit.room);
    return html`<${UseBar} part=${taken / limit.limit} label="${taken} of ${limit.limit} used" />`;
  }
  const held = Object.entries(limit.pressure?.held ?? {}).flatMap(([priority, units]) => Array(Math.min(units, 60)).fill(priority));
  return html`<${SlotCells} limit=${limit.limit} active=${limit.active} holders=${held} />`;
}

/** Seconds until the last task that waits now starts; null: not known. */
function pressureOf(limit, now) {
  const last = limit.waiting > 0 && limit.pressure?.last_start_p50;
  return last ? Math.max(0, (Date.parse(last) - now) / 1000) : null;
}

function Pressure({ of: limit, longest }) {
  const words = (text, kind) => html`<div class="press words"><span class=${kind}>${text}</span></div>`;
  if (isPaused(limit)) return words("held", limit.waiting ? "warn" : "dim");
  if (limit.waiting === 0) return words(limit.room > 0 ? "room" : "full", "dim");
  const seconds = pressureOf(limit, clock.value);
  if (seconds === null) return words("not known yet", "dim");
  if (seconds === 0) return words("due", "dim");
  return html`<div class="press"><i style=${{ width: `${100 * Math.sqrt(seconds / longest)}%` }}></i><span>${span(seconds)}</span></div>`;
}
