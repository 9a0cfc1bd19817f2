// A task over the gateway's public API: submitted over a socket, cancelled when the page is closed.

const POLL_MS = 2000; // between two looks at the place in the queue
const LAST = ["JOB_COMPLETE", "JOB_FAILED", "CANCELLED", "ERROR"];

export const opened = (path) => new WebSocket(`${location.origin.replace("http", "ws")}${path}`);

export const isLast = ({ type }) => type === "LOST" || LAST.includes(type);

export function submit(task, hear) {
  const socket = opened("/ws/tasks");
  let id, ended = false, polling;

  const place = async () => {
    const answer = await fetch(`/api/v1/tasks/${id}`).catch(() => null);
    const { status, queue_position, estimate } = answer?.ok ? await answer.json() : {};
    if (status === "queued" && polling && !ended) hear({ type: "QUEUED", queue_position, estimate });
  };

  const watch = ({ type }) => {
    const waits = type === "SUBMITTED" || type === "QUEUED" || type === "RETRY";
    const starts = type === "STEP_START";
    if (waits) polling ??= setInterval(place, POLL_MS);
    if (starts || ended) polling = clearInterval(polling);
  };

  socket.onopen = () => socket.send(JSON.stringify({ ...task, cancel_on_disconnect: true }));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    id ??= message.task_id;
    ended = isLast(message);
    watch(message);
    hear(message);
    if (ended) socket.close();
  };
  socket.onclose = () => {
    clearInterval(polling);
    if (!ended) hear({ type: "LOST" });
  };
  return { cancel: () => socket.readyState === WebSocket.OPEN && id && socket.send(JSON.stringify({ cancel: id })) };
}

// The seconds until the deadline of a run, ten times a second, and the seconds that it has in all. Only the server's clock
// counts: `at` and `deadline` are its own. The message that came fastest says best how far this clock is from it.
export class CountDown {
  #began;
  #ahead = Infinity;
  #deadline;
  #ticking;

  // Returns the seconds that the run now has in all.
  hear({ type, at, deadline }, show) {
    this.#ahead = Math.min(this.#ahead, performance.now() - Date.parse(at));
    if (type === "STEP_START") this.#began = Date.parse(at);
    this.#deadline = Date.parse(deadline);
    const whole = (this.#deadline - this.#began) / 1000;
    const tick = () => show(Math.max(0, (this.#deadline + this.#ahead - performance.now()) / 1000), whole);
    this.stop();
    this.#ticking = setInterval(tick, 100);
    tick();
    return whole;
  }

  stop() {
    clearInterval(this.#ticking);
  }
}
