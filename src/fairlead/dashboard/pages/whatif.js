// What if: the work of the last day again, with other limits.
import { count, plural, share, span, time } from "../lib/format.js";
import { simulate } from "../lib/simulate.js";
import { html, useEffect, useRef, useSignal } from "../lib/ui.js";
import { Empty } from "../parts/empty.js";
import { Lede } from "../parts/master.js";
import { ProblemNotice, Waiting } from "../parts/notice.js";
import { Slider } from "../parts/slider.js";
import { WaitPlot } from "../parts/waitplot.js";
import { Table } from "../parts/table.js";

const PAUSE = 400; // ms without a change, before it is simulated
const SHOWN = 12; // limits
const GROUPS = ["high", "medium", "low", "all"];

export default function WhatIf() {
  const changes = useSignal({}); // the name of a limit, or "" for the slots of the workers: its new size
  const { answer, error, busy } = useSimulation(changes.value);
  if (!answer) return html`<${Lede} title="What if" />${error ? html`<${ProblemNotice} error=${error} />` : html`<${Waiting} rows=${4} />`}`;
  if (!answer.before) {
    return html`<${Lede} title="There is no work to try it on." />
      <${Empty} title="Tasks that have run within the last day are played again with other limits. Nothing has run yet." command="fairlead up --demo" />`;
  }
  const change = (name) => (value) => { changes.value = value === null ? without(changes.value, name) : { ...changes.value, [name]: value }; };
  return html`
    <${Headline} answer=${answer} changes=${changes.value} />
    ${error && html`<${ProblemNotice} error=${error} />`}
    <div class="cols wi">
      <section class="panel c4" aria-labelledby="wi-limits">
        <div class="hd"><h2 id="wi-limits">Limits</h2>
          <button class="btn sm" disabled=${!Object.keys(changes.value).length} onClick=${() => { changes.value = {}; }}>As they are</button></div>
        <${Slider} label="Slots of all workers" value=${answer.slots} changed=${changes.value[""]} least=${1} onChange=${change("")} />
        ${answer.limits.filter((limit) => limit.kind === "slots").slice(0, SHOWN).map((limit) => html`
          <${Slider} key=${limit.name} label=${limit.name} sub=${plural(limit.tasks, "task")} value=${limit.limit}
            changed=${changes.value[limit.name]} least=${0} most_needed=${limit.most_needed} onChange=${change(limit.name)} />`)}
        ${answer.limits.filter((limit) => limit.kind === "rate").slice(0, SHOWN).map((limit) => html`
          <${Slider} key=${limit.name} label=${limit.name} sub=${limit.rate} value=${perMinute(limit.rate)} unit="/min"
            changed=${changes.value[limit.name]} least=${1} onChange=${change(limit.name)} />`)}
      </section>
      <section class="panel c8" aria-labelledby="wi-waits" aria-busy=${busy}>
        <div class="hd"><h2 id="wi-waits">Waits by time of arrival</h2>
          <span class="legend"><span><i class="key before"></i>as it is</span><span><i class="key after"></i>changed</span><span class="dim">p95, ${busy ? "simulating" : "simulated"}</span></span></div>
        <${WaitPlot} series=${answer.series} />
        <${Waits} answer=${answer} />
        <p class="sub below">${count(answer.tasks)} tasks that have run, from ${time(answer.since, { seconds: false })} to ${time(answer.until, { seconds: false })}.
          Workers count as one that can do everything; nothing is changed by this page.</p>
      </section>
    </div>`;
}

function without(values, name) {
  const left = { ...values };
  delete left[name];
  return left;
}

/** `1/s`, `90/min`, `1 per 12.5 s` as a number per minute. */
function perMinute(rate) {
  const slow = /^1 per ([0-9.e+-]+) s$/.exec(rate);
  if (slow) return Math.max(1, Math.round(60 / Number(slow[1])));
  const [, number, unit] = /^(\d+)\/(\w+)$/.exec(rate);
  return Math.max(1, Math.round(Number(number) * { s: 60, min: 1, h: 1 / 60, day: 1 / 1440 }[unit]));
}

/** The latest answer, while the next one is on its way. */
function useSimulation(changes) {
  const state = useSignal({ busy: true });
  const rates = useRef(new Set());
  const wanted = JSON.stringify(changes);
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      state.value = { ...state.peek(), busy: true };
      try {
        const answer = await simulate(bodyOf(changes, rates.current), controller.signal);
        rates.current = new Set(answer.limits.filter((limit) => limit.kind === "rate").map((limit) => limit.name));
        state.value = { answer, busy: false };
      } catch (error) {
        if (!controller.signal.aborted) state.value = { ...state.peek(), error, busy: false };
      }
    }, state.peek().answer ? PAUSE : 0);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [wanted]);
  return state.value;
}

function bodyOf(changes, rates) {
  const { "": slots, ...limits } = changes;
  const sizes = Object.entries(limits).map(([name, value]) => [name, rates.has(name) ? { rate: `${value}/min` } : { limit: value }]);
  return { ...(slots === undefined ? {} : { slots }), limits: Object.fromEntries(sizes) };
}

function Headline({ answer, changes }) {
  const [before, after] = [answer.before.waits.all?.p95, answer.after.waits.all?.p95];
  const stuck = answer.after.unstarted;
  const title = !Object.keys(changes).length ? `As it is, 95 of 100 tasks start within ${span(before ?? 0)}.`
    : stuck ? `${plural(stuck, "task")} would never start.`
    : after < before ? `95 of 100 tasks would start within ${span(after)}, not ${span(before)}.`
    : after > before ? `95 of 100 tasks would wait up to ${span(after)}, not ${span(before)}.` : `It would change nothing: ${span(before ?? 0)} at most for 95 of 100.`;
  return html`<${Lede} title=${title}>Move a limit, and the work of the last day is played again.<//>`;
}

function Waits({ answer }) {
  const cell = (side, name) => (group) => {
    const waits = answer[side].waits[group];
    return waits ? span(waits[name]) : "–";
  };
  const columns = [
    { title: "Wait", cell: (group) => (group === "all" ? html`<b>all</b>` : html`<span class="p ${group[0]}">${group}</span>`) },
    { title: "p50 now", num: true, cell: cell("before", "p50") },
    { title: "changed", num: true, cell: (group) => html`<b>${cell("after", "p50")(group)}</b>` },
    { title: "p95 now", num: true, cell: cell("before", "p95") },
    { title: "changed", num: true, cell: (group) => html`<b>${cell("after", "p95")(group)}</b>` },
    { title: "longest now", num: true, hide: true, cell: cell("before", "max") },
    { title: "changed", num: true, hide: true, cell: (group) => html`<b>${cell("after", "max")(group)}</b>` },
  ];
  return html`
    <${Table} label="Waits side by side" columns=${columns} rows=${GROUPS.filter((group) => answer.before.waits[group])} keyOf=${(group) => group} />
    <p class="sub below">Slots used: ${share(answer.before.utilisation)} now, <b>${share(answer.after.utilisation)}</b> changed.</p>`;
}
