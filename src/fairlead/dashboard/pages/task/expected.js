// What was said about the start, and what happened: honesty needs both.
import { ms, span, time } from "../../lib/format.js";
import { clock } from "../../lib/live.js";
import { html, useRef } from "../../lib/ui.js";
import { Table } from "../../parts/table.js";

const MOST = 600; // estimates that this window remembers
const NARROW = matchMedia("(max-width: 640px)");
const [HEIGHT, LEFT, BOTTOM] = [190, 56, 22];

export function Expected({ task }) {
  const said = useSaid(task);
  const first = task.estimate_given ?? said[0];
  const really = task.waited_seconds;
  if (!first) return html`<section class="panel c8"><div class="hd"><h2>What we said, and what happened</h2></div>
    <p class="mut">${really === null ? "Nothing is known yet about how long such tasks wait." : `Nothing was said about its wait, because nothing was known. It waited ${span(really)}.`}</p></section>`;
  const soFar = (clock.value - ms(task.created_at)) / 1000;
  const verdict = really === null ? ["open", "dim"] : really <= first.p90_seconds ? ["in range", "good"] : ["later than p90", "warn"];
  return html`
    <section class="panel c8">
      <div class="hd"><h2>What we said, and what happened</h2><span class="sub">expected start, over the time we said it</span></div>
      ${said.length > 1 && html`<${Plot} said=${said} task=${task} />`}
      <${Table} label="Estimates" rows=${[first]} columns=${[
        { title: "Said at", hide: true, cell: (one) => time(one.at) },
        { title: "Wait p50", num: true, cell: (one) => span(one.p50_seconds) },
        { title: "p90", num: true, cell: (one) => span(one.p90_seconds) },
        { title: "Really", num: true, cell: () => (really === null ? html`<span class="dim">${span(soFar)} so far</span>` : html`<b>${span(really)}</b>`) },
        { title: "Verdict", num: true, cell: () => html`<span class=${verdict[1]}>${verdict[0]}</span>` },
      ]} />
    </section>`;
}

/** The first estimate, and all that this window has seen since. */
function useSaid(task) {
  const kept = useRef([]);
  const known = kept.current;
  for (const one of [task.estimate_given, task.estimate]) {
    if (one && ms(one.at) > ms(known.at(-1)?.at ?? 0)) known.push(one);
  }
  if (known.length > MOST) known.splice(1, known.length - MOST);
  return known;
}

function Plot({ said, task }) {
  const width = NARROW.matches ? 340 : 760; // so that its words have the size of others
  const started = task.waited_seconds === null ? null : ms(task.created_at) + 1000 * task.waited_seconds;
  const points = said.map((one) => ({ at: ms(one.at), p50: ms(one.at) + 1000 * one.p50_seconds, p90: ms(one.at) + 1000 * one.p90_seconds }));
  const from = points[0].at;
  const until = Math.max(points.at(-1).at, from + 1000);
  const low = Math.min(...points.map((point) => point.p50), started ?? Infinity);
  const high = Math.max(...points.map((point) => point.p90), low + 1000, started ?? 0);
  const x = (at) => LEFT + ((width - LEFT - 12) * (at - from)) / (until - from);
  const y = (moment) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - 14) * (moment - low)) / (high - low);
  const line = points.map((point, i) => `${i ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.p50).toFixed(1)}`).join(" ");
  const band = `${line} ${points.toReversed().map((point) => `L${x(point.at).toFixed(1)} ${y(point.p90).toFixed(1)}`).join(" ")} Z`;
  const marks = [0, 1 / 3, 2 / 3, 1].map((part) => low + part * (high - low));
  const last = points.at(-1);
  return html`
    <svg class="estimates ${task.priority[0]}" viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="First said ${time(points[0].p50)}, p90 ${time(points[0].p90)}; last ${time(last.p50)}, p90 ${time(last.p90)}">
      ${marks.map((mark) => html`<line class="ax" x1=${LEFT} x2=${width} y1=${y(mark)} y2=${y(mark)} /><text x=${LEFT - 8} y=${y(mark) + 4} text-anchor="end">${time(mark)}</text>`)}
      <path class="band" d=${band} /><path class="line" d=${line} />
      ${started !== null && html`<path class="really" d="M${LEFT} ${y(started)}H${width}" /><text class="t1" x=${width - 4} y=${y(started) - 6} text-anchor="end">really started ${time(started)}</text>`}
      ${started === null && html`<circle class="dotmark" cx=${x(last.at)} cy=${y(last.p50)} r="4" /><text class="t1" x=${x(last.at) - 8} y=${y(last.p50) - 8} text-anchor="end">we now say ${time(last.p50)}</text>`}
      <text x=${LEFT} y=${HEIGHT - 4}>${time(from)}</text><text x=${width - 2} y=${HEIGHT - 4} text-anchor="end">${time(until)}</text>
    </svg>`;
}
