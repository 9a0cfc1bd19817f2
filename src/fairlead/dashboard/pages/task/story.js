// The life of a task as pieces of time: what it waited for, when it ran, what is expected. Pure.
import { ms, workerName } from "../../lib/format.js";

const ENDED = ["completed", "failed", "cancelled", "dead_letter"];
const WORDS = { completed: "Completed", failed: "Failed", cancelled: "Cancelled", dead_letter: "Dead letter" };

/** [{ kind: wait | run | pause, from, to, words, note, isBad }], without a gap, up to now or its end. */
export function piecesOf(task, events, now) {
  const changes = events?.length ? fromEvents(events) : fromTask(task);
  return changes.slice(0, ENDED.includes(task.status) ? -1 : undefined).map((change, i) => ({
    ...change,
    to: changes[i + 1]?.at ?? now,
    isBad: change.kind === "run" && Boolean(changes[i + 1]?.isBad),
  }));
}

/** How it ended; null while it has not. */
export function endOf(task) {
  if (!ENDED.includes(task.status)) return null;
  return { at: ms(task.completed_at), words: WORDS[task.status], isBad: ["failed", "dead_letter"].includes(task.status) };
}

/** Every change of the state that history has kept. */
function fromEvents(events) {
  const changes = [];
  for (const event of events) {
    if (event.to === event.from) continue;
    const before = changes.at(-1);
    const failure = before?.kind === "run" && ["delayed", "queued"].includes(event.to) ? event.data?.code : null;
    const again = before && event.to !== "executing" && !ENDED.includes(event.to);
    changes.push({
      at: ms(event.at),
      kind: KINDS[event.to] ?? "wait",
      isFailure: Boolean(failure),
      words: failure ?? (event.to === "executing" ? "Started" : WORDS[event.to] ?? (again ? "Queued again" : "Submitted")),
      note: event.to === "executing" ? workerName(event.worker_id) : null,
      isBad: Boolean(before?.kind === "run" && (event.data?.code || ["failed", "dead_letter"].includes(event.to))),
    });
  }
  return changes;
}

const KINDS = { executing: "run", delayed: "pause", queued: "wait" };

/** Without history only the first wait and the latest run are known. */
function fromTask(task) {
  const created = ms(task.created_at);
  const changes = [{ at: created, kind: "wait", words: "Submitted", note: null }];
  const first = task.waited_seconds === null ? null : created + 1000 * task.waited_seconds;
  const started = ms(task.started_at);
  if (first !== null && task.attempt > 1 && started && started - first > 500) {
    changes.push({ at: first, kind: "pause", words: "Started", note: `${task.attempt - 1} earlier ${task.attempt === 2 ? "try" : "tries"}` });
  }
  if (started && (task.status === "executing" || task.completed_at)) {
    changes.push({ at: started, kind: "run", words: "Started", note: workerName(task.assigned_worker_id) });
  }
  if (task.completed_at) changes.push({ at: ms(task.completed_at), kind: "end", isBad: ["failed", "dead_letter"].includes(task.status) });
  return changes;
}

/** What is expected of a task that has not ended, by its followed step; null: nothing is known. */
export function expectationOf(task, step, now) {
  if (ENDED.includes(task.status)) return null;
  if (step?.end_p50) {
    return { start: Math.max(ms(step.start_p50), task.status === "executing" ? 0 : now), start90: ms(step.start_p90), end: ms(step.end_p50), end90: ms(step.end_p90) };
  }
  if (!task.estimate || task.status === "executing") return null;
  const at = ms(task.estimate.at);
  return { start: at + 1000 * task.estimate.p50_seconds, start90: at + 1000 * task.estimate.p90_seconds, end: null, end90: null };
}
