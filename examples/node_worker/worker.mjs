// A Fairlead worker in plain Node.js: register, poll, run, report, stay alive, drain, leave.

const GATEWAY = process.env.FAIRLEAD_URL ?? "http://127.0.0.1:8000";
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

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

async function call(method, path, body) {
  const headers = { "content-type": "application/json", ...(KEY && { authorization: `Bearer ${KEY}` }) };
  const answer = await fetch(GATEWAY + path, { method, headers, body: JSON.stringify(body) });
  const json = await answer.json();
  if (answer.ok) return json;
  const refused = answer.status < 500 && ![408, 429].includes(answer.status); // else it is worth a repetition
  throw Object.assign(new Error(json.detail), { code: json.code, refused });
}

// A gateway that restarts is away for a moment: nothing is lost if the same request is sent again.
async function insist(path, body) {
  for (;;) {
    try {
      return await call("POST", path, body);
    } catch (error) {
      if (error.refused) throw error;
      console.error(`${path}: ${error.message}; trying again`);
      await pause(1);
    }
  }
}

const register = () =>
  insist("/internal/workers/register", { name: "node", capacity: CAPACITY, task_types: Object.keys(handlers) });

let me = await register();
const path = (act = "") => `/internal/workers/${me.worker_id}${act}`;
const inHand = new Map(); // tasks that run or are not reported yet: task id -> AbortController
let draining = false;

async function run(task) {
  const stop = new AbortController();
  const timeout = Object.assign(new Error("it took too long"), { code: "timeout" });
  const timer = setTimeout(() => stop.abort(timeout), task.timeout_seconds * 1000);
  inHand.set(task.task_id, stop);
  console.log(`runs ${task.task_id}`);
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
    await insist(path("/result"), report);
  } catch (error) {
    console.error(`result of ${task.task_id}: ${error.message}`); // cancelled, or another worker has it by now
  }
  inHand.delete(task.task_id);
}

// The leases of the tasks in hand are renewed. Others expire: a poll whose answer was lost blocks nothing.
const beat = setInterval(async () => {
  try {
    const status = draining ? "draining" : "active";
    const { cancel } = await call("POST", path("/heartbeat"), {
      current_load: inHand.size, status, task_ids: [...inHand.keys()],
    });
    for (const id of cancel) inHand.get(id)?.abort(new Error("cancelled"));
  } catch (error) {
    console.error(`heartbeat: ${error.message}`);
  }
}, (me.heartbeat_seconds * 1000) / 2);

for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (draining = true));
console.log(`worker ${me.worker_id} polls ${GATEWAY}`);

while (!draining) {
  const room = CAPACITY - inHand.size;
  if (room === 0) {
    await pause(0.02);
    continue;
  }
  try {
    const wait_seconds = inHand.size ? 0.2 : 5;
    const polled = await call("POST", path("/poll"), { available_capacity: room, wait_seconds });
    for (const task of polled.tasks) run(task);
    draining ||= polled.draining; // an operator asked for it
  } catch (error) {
    console.error(`poll: ${error.message}`);
    if (error.code === "unknown_worker") me = await register(); // it was silent for too long
    else if (error.refused) throw error;
    else await pause(1);
  }
}
while (inHand.size) await pause(0.02);
clearInterval(beat);
await call("DELETE", path()).catch((error) => console.error(`leave: ${error.message}`));
