// Which limits are drawn and which task or job is followed: steady, so that the eye can stay.
import { queried, setQuery } from "../../lib/router.js";
import { useRef } from "../../lib/ui.js";

const ROWS = 4;
const STAYS = 10_000; // ms that a row stays after it has left the first four

/** Names for the forecast: the limits with the longest waits, and those of the followed steps, in their order. */
export function useTop(limits, extra) {
  const rows = useRef(new Map()); // name -> when it was last among the first
  const now = performance.now();
  const wanted = (limits?.limits ?? []).filter((limit) => limit.waiting > 0 || limit.active > 0).slice(0, ROWS);
  for (const limit of wanted) rows.current.set(fullName(limit), now);
  for (const [name, seen] of rows.current) if (now - seen > STAYS) rows.current.delete(name);
  const top = [...rows.current.keys()].filter((name) => !extra.includes(name)).slice(0, Math.max(0, ROWS + 1 - extra.length));
  return [...extra, ...top];
}

const fullName = (limit) => (limit.tenant ? `${limit.tenant}/${limit.name}` : limit.name);

/** In the address if somebody chose it; else a job that waits, and the next when that has ended. */
export function useFollowed() {
  const auto = useRef({ id: null, limits: [] });
  const given = queried("follow");
  const id = given || auto.current.id;
  return {
    id,
    isGiven: Boolean(given),
    limits: id ? auto.current.limits : [],
    /** Learns from a forecast: the limits of the steps, and whether there is anything left to follow. */
    see(forecast, fresh, isLost) {
      if (!forecast) return;
      if (fresh && forecast.follow && id) auto.current.limits = [...new Set(forecast.follow.steps.flatMap((step) => step.limits))];
      const over = forecast.follow?.steps.every((step) => ["completed", "failed", "cancelled", "dead_letter"].includes(step.status));
      if (!given && (!auto.current.id || over || isLost)) auto.current.id = candidates(forecast).find((one) => one !== id) ?? null;
    },
    next(forecast, wanted) {
      const all = forecast ? candidates(forecast) : [];
      setQuery({ follow: wanted ?? all[(all.indexOf(id) + 1) % Math.max(1, all.length)] ?? "" });
    },
  };
}

/** All that run or are expected, on any limit and on the workers. */
export const runsOf = ({ limits, workers }) =>
  [...limits, ...(workers ? [workers] : [])].flatMap((limit) => limit.tracks.flatMap((track) => track.runs));

/** Jobs that wait before single tasks: they go through more. */
function candidates(forecast) {
  const runs = runsOf(forecast);
  const waiting = runs.filter((run) => run.state === "expected" && run.task_id);
  const jobs = [...waiting, ...runs].filter((run) => run.job_id).map((run) => run.job_id);
  return [...new Set([...jobs, ...waiting.map((run) => run.task_id)])].slice(0, 50);
}
