// The life of a task on a line: solid while it ran, dotted while it waited, outlined what is expected.
import { hue, span, time } from "../../lib/format.js";
import { clock } from "../../lib/live.js";
import { html } from "../../lib/ui.js";
import { endOf, expectationOf, piecesOf } from "./story.js";

const CLOSE = 10; // percent between two labels, below which the second is left out

export function Life({ task, events, step }) {
  const now = clock.value;
  const pieces = piecesOf(task, events, now);
  const end = endOf(task);
  const expected = expectationOf(task, step, now);
  return html`
    <${Drawn} task=${task} pieces=${pieces} end=${end} expected=${expected} now=${now} />
    <${Listed} task=${task} pieces=${pieces} end=${end} expected=${expected} now=${now} />`;
}

function Drawn({ task, pieces, end, expected, now }) {
  const from = pieces[0]?.from ?? pieces[0]?.at ?? now;
  const until = Math.max(end?.at ?? now, expected?.end90 ?? expected?.start90 ?? 0, from + 1000);
  const x = (ms) => Math.max(0, Math.min(96, (96 * (ms - from)) / (until - from)));
  const at = (ms) => ({ left: `${x(ms)}%` });
  const between = (a, b) => ({ left: `${x(a)}%`, width: `${Math.max(0, x(b) - x(a))}%` });
  const tone = hue(task.priority);
  const labels = spaced(labelsOf(pieces, end, expected), x);
  return html`
    <div class="lifewrap d-only" tabindex="0" role="img" aria-label=${spoken(pieces, end, expected)}>
      <div class="life">
        ${pieces.map((piece) => piece.kind === "run"
          ? html`<span class="bar run ${tone}" key=${piece.at} style=${between(piece.at, piece.to)}></span>`
          : html`<i class="wait" key=${piece.at} style=${between(piece.at, piece.to)}></i>
              ${x(piece.to) - x(piece.at) > CLOSE && html`<span class="up c" style=${at((piece.at + piece.to) / 2)}>waited ${span((piece.to - piece.at) / 1000)}</span>`}`)}
        ${expected && expected.start > now && html`<i class="wait" style=${between(now, expected.start)}></i>`}
        ${expected?.end && html`
          <span class="bar next sel ${tone}" style=${between(Math.max(expected.start, now), expected.end)}></span>
          <i class="tail ${tone}" style=${between(expected.end, expected.end90)}></i>`}
        ${expected && !expected.end && html`<i class="tail ${tone}" style=${between(expected.start, expected.start90)}></i>`}
        ${pieces.map((piece) => html`<i class="ring ${piece.isFailure ? "bad" : ""}" key=${`r${piece.at}`} style=${at(piece.at)}></i>`)}
        ${end && html`<i class="ring ${end.isBad ? "bad" : "end"}" style=${at(end.at)}></i>`}
        ${!end && html`<i class="now" style=${at(now)}></i><span class="nowl" style=${at(now)}>now ${time(now)}</span>`}
        ${labels.map((label) => html`
          <span class="dn ${label.x > 88 ? "r" : label.x > 4 ? "c" : ""} ${label.isBad ? "bad" : ""}" key=${label.at} style=${{ left: `${label.x}%` }}><b>${label.words}</b>${label.note}</span>`)}
      </div>
    </div>`;
}

function labelsOf(pieces, end, expected) {
  const found = pieces.map((piece) => ({ at: piece.at, words: piece.words, note: time(piece.at), isBad: piece.isFailure }));
  if (end) found.push({ at: end.at, words: end.words, note: time(end.at), isBad: end.isBad, keep: true });
  if (expected && expected.start > (pieces.at(-1)?.at ?? 0) + 500) found.push({ at: expected.start, words: `Starts about ${time(expected.start)}`, note: `p90 ${time(expected.start90)}` });
  if (expected?.end90) found.push({ at: expected.end90, words: "Ends by", note: time(expected.end90), keep: true });
  return found;
}

/** Without those that would be written over one another; the last is always there. */
function spaced(labels, x) {
  const shown = [];
  for (const label of labels.map((one) => ({ ...one, x: x(one.at) }))) {
    while (label.keep && shown.length > 1 && label.x - shown.at(-1).x < CLOSE) shown.pop();
    if (!shown.length || label.keep || label.x - shown.at(-1).x >= CLOSE) shown.push(label);
  }
  return shown;
}

function spoken(pieces, end, expected) {
  const said = pieces.map((piece) => `${piece.words} ${time(piece.at)}${piece.note ? ` (${piece.note})` : ""}`);
  if (end) said.push(`${end.words} ${time(end.at)}`);
  if (expected) said.push(`expected to start ${time(expected.start)}${expected.end ? ` and to end ${time(expected.end)}, p90 ${time(expected.end90)}` : ""}`);
  return said.join(", ");
}

/** On a phone. */
function Listed({ pieces, end, expected, now }) {
  const rows = [
    ...pieces.map((piece) => ({ kind: piece.kind === "run" ? "er" : piece.isFailure ? "eb" : "e", at: piece.at, words: piece.words, note: `${piece.note ? `${piece.note}, ` : ""}${span((piece.to - piece.at) / 1000)}` })),
    ...(end ? [{ kind: end.isBad ? "eb" : "en", at: end.at, words: end.words, note: "" }] : [{ kind: "en", at: now, words: "Now", note: "" }]),
    ...(expected ? [{ kind: "ef", at: expected.start, words: "Starts, expected", note: `p90 ${time(expected.start90)}` }] : []),
    ...(expected?.end ? [{ kind: "ef", at: expected.end, words: "Ends, expected", note: `p90 ${time(expected.end90)}` }] : []),
  ];
  return html`
    <ol class="lifelist m-only">${rows.map((row) => html`
      <li class=${row.kind} key=${row.words + row.at}><time>${time(row.at)}</time><i class="mk"></i><span><b>${row.words}</b><br /><span class="mut">${row.note}</span></span></li>`)}
    </ol>`;
}
