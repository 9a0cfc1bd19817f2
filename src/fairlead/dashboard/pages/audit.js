// Audit: what was changed by hand, by whom and why.
import { get } from "../lib/api.js";
import { time } from "../lib/format.js";
import { usePages } from "../lib/pages.js";
import { queried } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Empty } from "../parts/empty.js";
import { Search } from "../parts/filters.js";
import { List } from "../parts/list.js";
import { Detail, Lede, Master, Section, withFilters } from "../parts/master.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";
import { Facts } from "../parts/table.js";

const wordsOf = (act) => act.replaceAll("_", " ");

export default function Audit({ id }) {
  const found = usePages("/api/v1/audit", {}, {
    rowsOf: (answer) => answer.entries,
    keyOf: (entry) => String(entry.seq),
    all: Boolean(queried("q") || id),
  });
  const text = queried("q").toLowerCase();
  const rows = found.rows?.filter((entry) => [entry.act, wordsOf(entry.act), entry.subject, entry.actor, entry.reason].some((one) => (one ?? "").toLowerCase().includes(text)));
  const lede = html`
    <${Lede} title=${headline(found.rows)} action=${html`<${Verify} />`}>Each entry names the one before it, so that a change of the past is noticed.<//>`;
  const filters = html`
    <div class="bar-top"><${Search} label="Search by act, subject, key or reason" /></div>`;
  const list = html`
    ${found.error && html`<${ProblemNotice} error=${found.error} />`}
    ${rows === undefined ? !found.error && html`<${Waiting} rows=${6} />`
      : rows.length ? html`
        <${List} label="Changes, the latest first" rows=${rows} keyOf=${(entry) => String(entry.seq)} columns="au" height=${48} current=${id}
          onEnd=${found.more} href=${(entry) => withFilters(`/audit/${entry.seq}`)} row=${cells}
          head=${html`<span>What</span><span class="hide-s">Why</span><span class="num">When</span>`} />`
      : text ? html`<${Empty} title="No change fits."><a class="link" href="/audit">Show all changes</a><//>`
      : html`<${Empty} title="Pauses, changed limits, replays and keys appear here, with who did it and why." />`}`;
  const entry = id && found.rows?.find((one) => String(one.seq) === id);
  return html`<${Master} lede=${lede} filters=${filters} list=${list} detail=${entry && html`<${Entry} entry=${entry} key=${id} />`} />`;
}

function headline(entries) {
  if (!entries) return "Audit";
  if (!entries.length) return "Nothing was changed by hand.";
  const { actor, act, subject, at } = entries[0];
  return `The last change: ${wordsOf(act)} ${subject}, by ${actor} at ${time(at, { seconds: false })}.`;
}

function cells(entry) {
  return html`
    <span class="two"><b class="cut">${wordsOf(entry.act)} <span class="mono">${entry.subject}</span></b><span class="dim cut">${entry.actor}</span></span>
    <span class="mut cut hide-s">${entry.reason}</span>
    <span class="num nw dim">${time(entry.at)}</span>`;
}

function Entry({ entry }) {
  return html`
    <${Detail} title=${`${wordsOf(entry.act)} ${entry.subject}`} sub="${entry.actor} at ${time(entry.at)}" back="/audit" backTitle="Audit">
      <${Facts} of=${[["Reason", entry.reason || "none was given"], ["Entry", html`<span class="mono">${entry.seq}</span>`]]} />
      <${Section} title="What changed"><${Difference} before=${entry.before} after=${entry.after} /><//>
    <//>`;
}

/** Fields that differ; what is the same says nothing about the change. */
function Difference({ before, after }) {
  const isObject = (value) => value !== null && typeof value === "object";
  if (!isObject(before) && !isObject(after)) return html`<p class="mono">${JSON.stringify(before)} → ${JSON.stringify(after)}</p>`;
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const text = (value) => (value === undefined ? "–" : JSON.stringify(value));
  const changed = names.filter((name) => text(before?.[name]) !== text(after?.[name]));
  if (!changed.length) return html`<p class="sub">Nothing that is recorded.</p>`;
  return html`
    <dl class="diff">${changed.map((name) => html`
      <dt>${name.replaceAll("_", " ")}</dt>
      <dd><del>${text(before?.[name])}</del> <span class="vh">became</span><span aria-hidden="true">→</span> <ins>${text(after?.[name])}</ins></dd>`)}</dl>`;
}

function Verify() {
  const state = useSignal({});
  const verify = async () => {
    state.value = { busy: true };
    try {
      state.value = { problems: (await get("/api/v1/audit/verify")).problems };
    } catch (error) {
      state.value = { error };
    }
  };
  const { busy, problems, error } = state.value;
  return html`
    <div class="verify">
      <span role="status">${error ? error.message : problems && (problems.length ? html`<span class="bad">${problems.join(" ")}</span>` : html`<span class="good">No entry was changed.</span>`)}</span>
      <button class="btn" disabled=${busy} onClick=${verify}>Check the chain</button>
    </div>`;
}
