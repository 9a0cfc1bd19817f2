// Now and next: each limit as tracks on an axis of time. Fact is solid, expectation outlined, doubt striped.
import { path } from "../lib/api.js";
import { hue, plural, soon, time } from "../lib/format.js";
import { serverNow } from "../lib/live.js";
import { html, useEffect, useLayoutEffect, useRef, useSignal } from "../lib/ui.js";
import { Bar } from "./chart-bar.js";
import { beyond, columns, drawnUntil, inSight, laidOut, roomAt, scaleOf, stops } from "./chart-layout.js";
import { Line } from "./chart-line.js";
import { usePast } from "./chart-past.js";
import { useOneTabStop } from "./roving.js";

const REBASE = 10 * 60_000; // ms after which the bars get new places, before numbers grow large
const NARROW = matchMedia("(max-width: 640px)");
const ROOM_FOR_WORDS = 170; // px
const ROOM_FOR_TICK = 72; // px, beside the last one, which ends at the edge
const GAP = 20; // px between the last bar and what is written after it

/**
 * `limits` of a forecast, the `followed` steps of one task or job, and the `seconds` ahead that are shown; `ended`:
 * tasks that ended before the window was opened, as the API lists them.
 */
export function Chart({ limits, followed, ended, seconds, now, stale, label, href = limitHref }) {
  const area = useRef();
  const width = useWidth(area);
  const origin = useRef(now);
  if (now - origin.current > REBASE) origin.current = now;
  const past = usePast(limits, ended, now);
  const rows = laidOut(limits, NARROW.matches);
  const height = rows.reduce((sum, row) => sum + row.size, 0);
  const scale = scaleOf({ origin: origin.current, now, width, seconds });
  const chosen = followed ? stops(followed.steps, rows, past, now) : [];
  const mine = new Set(followed?.steps.map((step) => step.task_id));
  const oneTabStop = useOneTabStop();
  const moving = { transform: `translateX(${scale.shift}px)` };
  return html`
    <div class="scroll">
      <div class="chart ${stale ? "stale" : ""}" role="group" aria-label=${label} ...${oneTabStop}>
        <${Axis} scale=${scale} seconds=${seconds} now=${now} />
        <div class="rows">
          <div class="grid" aria-hidden="true">
            <i class="past" style=${{ width: `${scale.nowX}px` }}></i>
            ${ticks(seconds).map((tick) => html`<i key=${tick} style=${{ left: `${scale.nowX + tick * 1000 * scale.perMs}px` }}></i>`)}
          </div>
          ${rows.map((row, i) => html`
            <div class="grp ${row.limit.paused ? "paused" : ""}" key=${row.limit.tenant + "/" + row.limit.name} style=${{ height: `${row.size}px` }}>
              <${Label} limit=${row.limit} href=${href} />
              <div class="tracks" ref=${i === 0 ? area : undefined}>
                <div class="layer" key=${origin.current} style=${moving}>
                  <${Bars} row=${row} scale=${scale} mine=${mine} past=${past} now=${now} />
                  ${chosen.filter((stop) => stop.row === row && !stop.isOnTrack).map((stop) => html`
                    <${Bar} key=${`f${stop.step.index}`} run=${{ ...stop, task_type: stop.step.name, priority: followed.priority }}
                      row=${row} slot=${stop.slot} scale=${scale} selected />`)}
                </div>
                <${Words} row=${row} scale=${scale} width=${width} quiet=${chosen.some((stop) => stop.row === row)} />
              </div>
            </div>`)}
          <div class="over" aria-hidden="true">
            <div class="layer" key=${origin.current} style=${moving}>
              <${Line} stops=${chosen} scale=${scale} width=${width} height=${height} />
            </div>
            <i class="now" style=${{ left: `${scale.nowX}px` }}></i>
          </div>
        </div>
      </div>
    </div>`;
}

const limitHref = (limit) => path`/limits/${limit.tenant ? `${limit.tenant}/${limit.name}` : limit.name}`;

function useWidth(area) {
  const width = useSignal(900);
  useLayoutEffect(() => {
    if (!area.current) return undefined;
    const observer = new ResizeObserver(([entry]) => { width.value = entry.contentRect.width || width.peek(); });
    observer.observe(area.current);
    return () => observer.disconnect();
  }, [Boolean(area.current)]);
  // the first render has no element to look at
  const again = useSignal(0);
  useEffect(() => { again.value = 1; }, []);
  again.value;
  return width.value;
}

/** Of about eight steps, in round numbers; from the past to the end of the window. */
function ticks(seconds) {
  const step = [15, 30, 60, 120, 300, 600].find((one) => seconds / one <= 9) ?? 600;
  const first = -Math.floor((seconds * 0.17) / step) * step;
  const made = [];
  for (let at = first; at <= seconds; at += step) if (at !== 0) made.push(at);
  return made;
}

function Axis({ scale, seconds, now }) {
  const isApart = (tick) => tick === seconds || (seconds - tick) * 1000 * scale.perMs > ROOM_FOR_TICK;
  const words = (s) => `${s < 0 ? "−" : "+"}${Math.abs(s) % 60 ? `${Math.abs(s)} s` : `${Math.abs(s) / 60} min`}`;
  return html`
    <div class="axis" aria-hidden="true">
      ${ticks(seconds).filter(isApart).map((tick) => html`
        <span key=${tick} class=${tick === seconds ? "last" : ""} style=${{ left: `${scale.nowX + tick * 1000 * scale.perMs}px` }}>${words(tick)}</span>`)}
      <span class="nowl" style=${{ left: `${scale.nowX}px` }}>${time(now)}</span>
    </div>`;
}

function Label({ limit, href }) {
  const held = limit.kind === "rate" ? `${plural(limit.active, "permit")} taken` : `${limit.active} of ${limit.limit} held`;
  const title = limit.name;
  return html`
    <div class="gl">
      ${limit.kind === "workers" ? html`<b>all workers</b>` : html`<a href=${href(limit)} title=${title}>${limit.name}</a>`}
      <span>${limit.paused ? html`<b class="warn">paused</b>` : held}${limit.waiting > 0 && html` · <b>${limit.waiting}</b> wait`}</span>
    </div>`;
}

function Bars({ row, scale, mine, past, now }) {
  const { limit } = row;
  if (limit.kind === "rate") return null;
  if (!row.bySlot) return null;
  const ended = untilNext(past.get(limit.name) ?? [], limit.tracks).filter((run) => run.end > scale.from);
  return html`
    ${ended.map((run) => html`
      <${Bar} key=${`p${run.key}.${run.slot}`} run=${run} row=${row} slot=${run.slot} scale=${scale} now=${now} done
        selected=${mine.has(run.task_id)} />`)}
    ${limit.tracks.map((track) => html`
      <${Track} key=${track.slot} track=${track} row=${row} scale=${scale} mine=${mine} now=${now} />`)}`;
}

/** That a run has ended is noticed late: its bar ends where the next one on its slot begins. */
function untilNext(ended, tracks) {
  const starts = tracks.map((track) => track.runs.filter((run) => run.state === "running").map((run) => Date.parse(run.start_p50)));
  for (const run of ended) starts[run.slot]?.push(run.start);
  return ended.map((run) => ({ ...run, end: Math.min(run.end, ...(starts[run.slot] ?? []).filter((start) => start > run.start)) }));
}

function Track({ track, row, scale, mine, now }) {
  const runs = inSight(track.runs, scale, drawnUntil(row.limit, scale));
  return runs.map((run) => html`
    <${Bar} key=${run.key} run=${run} row=${row} slot=${track.slot} scale=${scale} now=${now}
      selected=${run.task_id !== null && mine.has(run.task_id)} />
    ${run.doubt > Math.max(run.end, now) && row.height > 6 && html`
      <i class="strip ${hue(run.priority)}" key=${`s${run.key}`} style=${{
        left: `${scale.x(Math.max(run.end, now))}px`, width: `${(run.doubt - Math.max(run.end, now)) * scale.perMs}px`,
        top: `${row.middle(track.slot) - row.top + row.height / 2 - 10}px`,
      }}></i>`}`);
}

/** What is written beside the bars, and does not move. */
function Words({ row, scale, width, quiet }) {
  const { limit } = row;
  if (limit.kind === "rate") return html`<${Columns} row=${row} scale=${scale} width=${width} />`;
  if (!row.bySlot) {
    return html`<div class="usebar wide" role="img" aria-label="${limit.active} of ${limit.limit} held">
      <i style=${{ width: `${(100 * limit.active) / Math.max(1, limit.limit)}%` }}></i></div>`;
  }
  const later = beyond(limit, drawnUntil(limit, scale));
  if (later) {
    const last = limit.last_start_p50 && `, last ${soon(limit.last_start_p50, scale.now)}`;
    return html`<span class="more">+${later}${last} →</span>`;
  }
  const room = quiet ? null : roomAt(limit);
  const x = room && scale.x(Math.max(room.after, scale.from)) + scale.shift + GAP;
  if (!room || room.at <= scale.now || x > width - ROOM_FOR_WORDS) return null;
  return html`<span class="room" style=${{ left: `${Math.max(x, scale.nowX + GAP)}px` }}>room from about ${soon(room.at, scale.now)}</span>`;
}

function Columns({ row, scale, width }) {
  const { size, most, columns: found } = columns(row.limit, scale, width, serverNow());
  return html`
    <div class="ratecells" role="img" aria-label="${row.limit.waiting} wait for a permit">
      ${found.map((column) => {
        let base = 0;
        return ["high", "medium", "low"].filter((one) => column.counts[one]).map((priority) => {
          const tall = (24 * column.counts[priority]) / most;
          base += tall;
          return html`<i class="cell ${hue(priority)} ${column.future ? "f" : ""}" key=${`${column.place}${priority}`} style=${{
            left: `${column.place * size}px`, width: `${size - 1}px`, height: `${tall}px`, bottom: `${1 + base - tall}px`,
          }}></i>`;
        });
      })}
    </div>`;
}

/** Which task or job a bar is of, for those who follow it. */
export function followedBy(element) {
  const bar = element?.closest?.(".bar[data-task]");
  return bar ? bar.dataset.job ?? bar.dataset.task : null;
}
