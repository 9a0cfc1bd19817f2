// What ran a moment ago: the forecast knows only what runs and what comes.
import { useRef } from "../lib/ui.js";
import { asMs } from "./chart-layout.js";

const KEPT = 11 * 60_000; // ms
const MOST = 400;

/** By limit, the runs that this window has seen end, and before those the tasks that had `ended` when it was opened. */
export function usePast(limits, ended, now) {
  const memory = useRef({ running: new Map(), past: new Map(), filled: new Set() });
  const { running, past, filled } = memory.current;
  note(limits, running, past, filled, now);
  for (const limit of ended ? limits : []) {
    if (filled.has(limit.name)) continue;
    filled.add(limit.name);
    past.set(limit.name, [...onTracks(limit, ended, past.get(limit.name) ?? []), ...(past.get(limit.name) ?? [])]);
  }
  return past;
}

function note(limits, running, past, filled, now) {
  const shown = new Set(limits.map((limit) => limit.name));
  for (const name of running.keys()) {
    if (shown.has(name)) continue;
    running.delete(name); // else a page that is open for days would remember every limit there has been
    past.delete(name);
    filled.delete(name);
  }
  for (const limit of limits) {
    const before = running.get(limit.name) ?? new Map();
    const after = new Map();
    for (const track of limit.tracks)
      for (const run of track.runs) if (run.state === "running") after.set(asMs(run).key, { ...asMs(run), slot: track.slot });
    const list = past.get(limit.name) ?? [];
    for (const [key, run] of before) if (!after.has(key)) list.push({ ...run, end: now, state: "ended" });
    past.set(limit.name, list.filter((run) => now - run.end < KEPT).slice(-MOST));
    running.set(limit.name, after);
  }
}

const unitsOf = (task, limit) => (limit.kind === "workers" ? 1 : task.limits[limit.name]);

/** Nobody keeps which slot a task had, because slots are alike: each gets the first that was free, from the latest on. */
function onTracks(limit, tasks, known) {
  if (limit.kind === "rate") return [];
  const taken = limit.tracks.map((track) => Math.min(Infinity, ...track.runs.map((run) => Date.parse(run.start_p50))));
  for (const run of known) taken[run.slot] = Math.min(taken[run.slot] ?? Infinity, run.start);
  const mine = tasks
    .filter((task) => unitsOf(task, limit) && task.started_at && !known.some((run) => run.task_id === task.task_id))
    .map((task) => ({ ...task, key: task.task_id, start: Date.parse(task.started_at), end: Date.parse(task.completed_at), state: "ended" }))
    .sort((a, b) => b.end - a.end);
  return mine.flatMap((run) => {
    const free = taken.flatMap((from, slot) => (from >= run.end - 50 ? [slot] : [])).slice(0, unitsOf(run, limit));
    for (const slot of free) taken[slot] = run.start;
    return free.map((slot) => ({ ...run, slot }));
  });
}
