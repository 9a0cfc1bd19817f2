// Where everything of a chart is: pure geometry, in ms and px. The gateway schedules; nothing here does.

const LABEL_SPACE = 34; // px above the tracks of a limit, on a phone
const PADDING = 8;
const TAG = 140; // px
const MOST_TRACKS = 32; // of a limit that is drawn slot by slot

/** Scarce is tall. */
export function trackHeight(slots) {
  if (slots <= 1) return 48;
  if (slots <= 3) return 29;
  return slots <= 8 ? 20 : 6;
}

/** The rows from top to bottom, with the y of each of their tracks. */
export function laidOut(limits, narrow) {
  let top = 0;
  return limits.map((limit) => {
    const bySlot = limit.kind !== "rate" && limit.limit <= MOST_TRACKS;
    const tracks = bySlot ? Math.max(1, limit.tracks.length) : 1;
    const height = bySlot ? trackHeight(tracks) : 34;
    const first = top + PADDING + (narrow ? LABEL_SPACE : 0);
    const row = { limit, bySlot, height, top, first, tracks, size: 2 * PADDING + tracks * height + (narrow ? LABEL_SPACE : 0) };
    row.middle = (slot) => first + Math.min(slot, tracks - 1) * height + height / 2;
    top += row.size;
    return row;
  });
}

/** Time to px. `origin` stays for minutes, so that bars move with one transform and not each by itself. */
export function scaleOf({ origin, now, width, seconds }) {
  const past = seconds * 0.17 * 1000;
  const perMs = width / (past + seconds * 1000);
  const nowX = past * perMs;
  return {
    perMs,
    now,
    nowX,
    from: now - past,
    until: now + seconds * 1000,
    x: (ms) => nowX + (ms - origin) * perMs,
    shift: -(now - origin) * perMs,
  };
}

/** Until when the runs of a limit are drawn: if some are left out, a tag that counts them is at the end. */
export function drawnUntil(limit, scale) {
  return beyond(limit, scale.until) ? scale.until - TAG / scale.perMs : scale.until;
}

/** The runs of a track that are in sight, as ms. `shown` is where a bar ends: at the latest where the next begins. */
export function inSight(runs, scale, until) {
  const known = runs.map(asMs);
  for (const [i, run] of known.entries()) {
    const next = known[i + 1];
    run.shown = Math.min(run.end, next?.start ?? Infinity);
    run.doubt = Math.min(run.end90, next ? Math.max(next.end, run.end) : Infinity); // stripes do not pile up
  }
  return known.filter((run) => run.end > scale.from && run.start < until);
}

export function asMs(run) {
  return {
    ...run,
    key: run.task_id ?? run.lease_id ?? `${run.start_p50}`,
    start: Date.parse(run.start_p50),
    start90: Date.parse(run.start_p90),
    end: Date.parse(run.end_p50),
    end90: Date.parse(run.end_p90),
  };
}

/** How many of a limit start later than this, or are on no track. */
export function beyond(limit, until) {
  const later = new Set();
  for (const track of limit.tracks)
    for (const run of track.runs)
      if (run.state === "expected" && Date.parse(run.start_p50) >= until) later.add(run.task_id ?? run.start_p50);
  return limit.more + later.size;
}

/** When a slot is free and nothing is expected to take it, and when the last stripe ends; null: not in sight. */
export function roomAt(limit) {
  if (limit.paused || limit.more || !limit.tracks.length) return null;
  const last = limit.tracks.map((track) => track.runs.at(-1)).filter(Boolean).map(asMs);
  const at = last.length < limit.tracks.length ? 0 : Math.min(...last.map((run) => run.end));
  return { at, after: Math.max(0, ...last.map((run) => run.end90)) };
}

/** The starts of a rate as columns: how many permits of each priority in each piece of the window. */
export function columns(limit, scale, width, now) {
  const size = width / 85;
  const found = new Map();
  for (const track of limit.tracks)
    for (const run of track.runs) {
      const start = Date.parse(run.start_p50);
      if (start < scale.from || start > scale.until) continue;
      const place = Math.floor((scale.x(start) + scale.shift) / size);
      const column = found.get(place) ?? found.set(place, { place, future: start > now, counts: {}, total: 0 }).get(place);
      column.counts[run.priority] = (column.counts[run.priority] ?? 0) + run.units;
      column.total += run.units;
    }
  const most = Math.max(1, ...[...found.values()].map((column) => column.total));
  return { size, most, columns: [...found.values()] };
}

/** The steps of the followed task or job on the rows: a place for each, also for those that wait in no queue yet. */
export function stops(steps, rows, past, now) {
  return steps.flatMap((step) => {
    const stop = onTrack(step, rows, past) ?? besideTracks(step, rows);
    return stop ? { ...stop, start: stop.state === "expected" ? Math.max(stop.start, now) : stop.start } : [];
  });
}

/** Where it has a bar: then that and the line agree. */
function onTrack(step, rows, past) {
  for (const row of rows) {
    const ended = past.get(row.limit.name)?.find((one) => one.task_id === step.task_id);
    if (ended) return { ...ended, step, row, isOnTrack: true };
    for (const { slot, runs } of row.limit.tracks) {
      const run = runs.find((one) => one.task_id === step.task_id);
      if (run) return { ...asMs(run), step, row, slot, isOnTrack: true };
    }
  }
  return null;
}

function besideTracks(step, rows) {
  const row = rows.find((one) => step.limits.includes(one.limit.name));
  if (!row || !step.start_p50 || !step.end_p50 || step.status === "completed") return null;
  return { ...asMs(step), step, row, slot: freeSlot(row.limit, step), state: "expected", isOnTrack: false };
}

/** The track on which the least is in the way. */
function freeSlot(limit, step) {
  const start = Date.parse(step.start_p50);
  const end = Date.parse(step.end_p50);
  let best = { slot: 0, overlap: Infinity };
  for (const track of limit.tracks) {
    const overlap = track.runs.reduce((sum, run) => {
      const shared = Math.min(end, Date.parse(run.end_p50)) - Math.max(start, Date.parse(run.start_p50));
      return sum + Math.max(0, shared);
    }, 0);
    if (overlap < best.overlap) best = { slot: track.slot, overlap };
  }
  return best.slot;
}
