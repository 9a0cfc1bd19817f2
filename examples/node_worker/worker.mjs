// A Fairlead worker in plain Node.js: register, poll, run, report, stay alive, drain.

const URL_BASE = process.env.FAIRLEAD_URL ?? "http://127.0.0.1:8000";
const KEY = process.env.FAIRLEAD_KEY;
const CAPACITY = 4;

// What this worker can do: task type -> function of the parameters.
const handlers = {
  reverse: async ({ text }) => ({ text: [...text].reverse().join("") }),
  sleep: async ({ seconds }, { signal }) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve({ slept: seconds }), seconds * 1000);
      signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)));
    }),
};

async function post(path, body) {
  const headers = { "content-type": "application/json", ...(KEY && { authorization: `Bearer ${KEY}` }) };
  const answer = await fetch(URL_BASE + path, { method: "POST", headers, body: JSON.stringify(body) });
  const json = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(json.detail), { code: json.code });
  return json;
}

const me = await post("/internal/workers/register", {
  name: "node", capacity: CAPACITY, task_types: Object.keys(handlers),
});
const path = `/internal/workers/${me.worker_id}`;
const running = new Map(); // task id -> AbortController
let draining = false;

async function run(task) {
  const stop = new AbortController();
  const timeout = Object.assign(new Error("it took too long"), { code: "timeout" });
  const timer = setTimeout(() => stop.abort(timeout), task.timeout_seconds * 1000);
  running.set(task.task_id, stop);
  const report = { task_id: task.task_id, fence: task.fence };
  try {
    const result = await handlers[task.task_type](task.parameters, { signal: stop.signal });
    Object.assign(report, { status: "completed", result });
  } catch (error) {
    const { message = String(error), code = "error", retriable = true } = error;
    Object.assign(report, { status: "failed", error: { message, code, retriable } });
  }
  clearTimeout(timer);
  try {
    await post(`${path}/result`, report);
  } catch (error) {
    console.error(`result of ${task.task_id}: ${error.message}`); // cancelled, or somebody else's by now
  }
  running.delete(task.task_id);
}

const beat = setInterval(async () => {
  try {
    const status = draining ? "draining" : "active";
    const { cancel } = await post(`${path}/heartbeat`, { current_load: running.size, status });
    for (const id of cancel) running.get(id)?.abort(new Error("cancelled"));
  } catch (error) {
    console.error(`heartbeat: ${error.message}`);
  }
}, (me.heartbeat_seconds * 1000) / 2);

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (draining = true));
console.log(`worker ${me.worker_id} polls ${URL_BASE}`);

while (!draining) {
  const room = CAPACITY - running.size;
  if (room === 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    continue;
  }
  try {
    const { tasks } = await post(`${path}/poll`, { available_capacity: room, wait_seconds: running.size ? 0.2 : 5 });
    for (const task of tasks) run(task);
  } catch (error) {
    console.error(`poll: ${error.message}`);
    if (error.code === "unknown_worker") process.exit(1); // given up as dead: start again
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
while (running.size) await new Promise((resolve) => setTimeout(resolve, 20));
clearInterval(beat);
