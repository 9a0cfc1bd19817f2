// What ran a moment ago: the forecast knows only what runs and what comes.
import { useRef } from "../lib/ui.js";
import { asMs } from "./chart-layout.js";

const KEPT = 11 * 60_000; // ms
const MOST = 400;

/** By limit, the runs that this window has seen end. */
export function usePast(limits, now) {
  const memory = useRef({ running: new Map(), ended: new Map(), seen: null });
  const { running, ended } = memory.current;
  if (memory.current.seen !== limits) {
    memory.current.seen = limits;
    note(limits, running, ended, now);
  }
  return ended;
}

function note(limits, running, ended, now) {
  const shown = new Set(limits.map((limit) => limit.name));
  for (const name of running.keys()) {
    if (shown.has(name)) continue;
    running.delete(name); // else a page that is open for days would remember every limit there has been
    ended.delete(name);
  }
  for (const limit of limits) {
    const before = running.get(limit.name) ?? new Map();
    const after = new Map();
    for (const track of limit.tracks)
      for (const run of track.runs) if (run.state === "running") after.set(asMs(run).key, { ...asMs(run), slot: track.slot });
    const list = ended.get(limit.name) ?? [];
    for (const [key, run] of before) if (!after.has(key)) list.push({ ...run, end: now, state: "ended" });
    ended.set(limit.name, list.filter((run) => now - run.end < KEPT).slice(-MOST));
    running.set(limit.name, after);
  }
}
