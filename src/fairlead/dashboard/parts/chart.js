// Now and next: each limit as tracks on an axis of time. Fact is solid, expectation outlined, doubt striped.
import { path } from "../lib/api.js";
import { hue, plural, time } from "../lib/format.js";
import { serverNow } from "../lib/live.js";
import { html, useEffect, useLayoutEffect, useRef, useSignal } from "../lib/ui.js";
import { beyond, columns, inSight, laidOut, roomAt, scaleOf, stops } from "./chart-layout.js";
import { Line } from "./chart-line.js";
import { usePast } from "./chart-past.js";
import { useOneTabStop } from "./roving.js";

const REBASE = 10 * 60_000; // ms after which the bars get new places, before numbers grow large
const NARROW = matchMedia("(max-width: 640px)");
const ROOM_FOR_WORDS = 150; // px

/** `limits` of a forecast, the `followed` steps of one task or job, and the `seconds` ahead that are shown. */
export function Chart({ limits, followed, seconds, now, stale, label, href = limitHref }) {
  const area = useRef();
  const width = useWidth(area);
  const origin = useRef(now);
  if (now - origin.current > REBASE) origin.current = now;
  const past = usePast(limits, now);
  const rows = laidOut(limits, NARROW.matches);
  const height = rows.reduce((sum, row) => sum + row.size, 0);
  const scale = scaleOf({ origin: origin.current, now, width, seconds });
  const chosen = followed ? stops(followed.steps, rows) : [];
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
                    <${Bar} key=${`f${stop.step.index}`} run=${{ ...stop, state: "expected", task_type: stop.step.name, priority: followed.priority }}
                      row=${row} slot=${stop.slot} scale=${scale} selected />`)}
                </div>
                <${Words} row=${row} scale=${scale} width=${width} quiet=${chosen.at(-1)?.row === row} />
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
  const words = (s) => `${s < 0 ? "−" : "+"}${Math.abs(s) % 60 ? `${Math.abs(s)} s` : `${Math.abs(s) / 60} min`}`;
  return html`
    <div class="axis" aria-hidden="true">
      ${ticks(seconds).map((tick) => html`
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
  return html`
    ${(past.get(limit.name) ?? []).map((run) => html`
      <${Bar} key=${`p${run.key}`} run=${run} row=${row} slot=${run.slot} scale=${scale} done />`)}
    ${limit.tracks.map((track) => html`
      <${Track} key=${track.slot} track=${track} row=${row} scale=${scale} mine=${mine} now=${now} />`)}`;
}

function Track({ track, row, scale, mine, now }) {
  const runs = inSight(track.runs, scale);
  return runs.map((run) => html`
    <${Bar} key=${run.key} run=${run} row=${row} slot=${track.slot} scale=${scale} now=${now}
      selected=${run.task_id !== null && mine.has(run.task_id)} />
    ${run.doubt > Math.max(run.end, now) && row.height > 6 && html`
      <i class="strip ${hue(run.priority)}" key=${`s${run.key}`} style=${{
        left: `${scale.x(Math.max(run.end, now))}px`, width: `${(run.doubt - Math.max(run.end, now)) * scale.perMs}px`,
        top: `${row.middle(track.slot) - row.top + row.height / 2 - 10}px`,
      }}></i>`}`);
}

/** One run; a link, because a person wants to see the task behind it. What holds a slot late reaches to now. */
function Bar({ run, row, slot, scale, now, selected, done }) {
  const start = Math.max(run.start, run.state === "expected" && now && !selected ? now : scale.from);
  const end = run.state === "running" ? Math.max(run.end, now ?? 0) : Math.max(run.shown ?? run.end, start);
  const kind = done ? "done" : run.state === "running" ? "run" : "next";
  const left = scale.x(start);
  const wide = Math.max(3, (end - start) * scale.perMs - 1.5);
  const style = { left: `${left}px`, width: `${wide}px`, top: `${row.middle(slot) - row.top - row.height / 2 + 1}px`, height: `${row.height - 2}px` };
  const who = run.user_id ?? (run.foreign ? "another tenant" : run.task_type ?? "a lease");
  const what = run.user_id ? run.task_type : null;
  const words = html`<span class="t"><span class="u">${who}</span>${what && html`<span class="x"> · ${what}</span>`}</span>`;
  const classes = `bar ${kind} ${hue(run.priority)} ${selected ? "sel" : ""} ${row.height > 40 ? "big" : ""}`;
  const label = `${row.limit.name}: ${who}${what ? `, ${what}` : ""}${run.priority ? `, ${run.priority}` : ""}, ${sentence(run, done)}`;
  if (!run.task_id) return html`<span class=${classes} style=${style} title=${label}>${row.height > 6 && words}</span>`;
  return html`
    <a class=${classes} style=${style} href=${path`/tasks/${run.task_id}`} title=${label} aria-label=${label}
      tabindex="-1" data-task=${run.task_id} data-job=${run.job_id ?? undefined}>${row.height > 6 && words}</a>`;
}

function sentence(run, done) {
  if (done) return `ran until ${time(run.end)}`;
  if (run.state === "running") return `runs since ${time(run.start)}, until about ${time(run.end)}, p90 ${time(run.end90)}`;
  return `starts about ${time(run.start)}, p90 ${time(run.start90)}`;
}

/** What is written beside the bars, and does not move. */
function Words({ row, scale, width, quiet }) {
  const { limit } = row;
  if (limit.kind === "rate") return html`<${Columns} row=${row} scale=${scale} width=${width} />`;
  if (!row.bySlot) {
    return html`<div class="usebar wide" role="img" aria-label="${limit.active} of ${limit.limit} held">
      <i style=${{ width: `${(100 * limit.active) / Math.max(1, limit.limit)}%` }}></i></div>`;
  }
  const later = beyond(limit, scale);
  const top = { top: `${row.middle(0) - row.top - 9}px` };
  if (later) {
    const last = limit.last_start_p50 && `, last ${time(limit.last_start_p50, { seconds: false })}`;
    return html`<span class="more" style=${top}>+${later}${last} →</span>`;
  }
  const room = quiet ? null : roomAt(limit);
  const x = room && scale.x(Math.max(room.after, scale.from)) + scale.shift + 28;
  if (!room || room.at < scale.from || x > width - ROOM_FOR_WORDS) return null;
  return html`<span class="room" style=${{ left: `${Math.max(x, scale.nowX + 28)}px` }}>room from about ${time(room.at, { seconds: false })}</span>`;
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
