// A task over the gateway's public API: submitted over a socket, cancelled when the page is closed.

const POLL_MS = 2000; // between two looks at the place in the queue
const LAST = ["JOB_COMPLETE", "JOB_FAILED", "CANCELLED", "ERROR"];

export function submit(task, hear) {
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws/tasks`);
  let id, ended = false, polling;

  const place = async () => {
    const answer = await fetch(`/api/v1/tasks/${id}`).catch(() => null);
    const { status, queue_position } = answer?.ok ? await answer.json() : {};
    if (status === "queued" && polling && !ended) hear({ type: "QUEUED", queue_position });
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
    ended = LAST.includes(message.type);
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

// The time until a deadline, four times a second. Only the server's clock counts: `at` and `deadline` are both its own.
export function countDown(message, show) {
  const whole = (Date.parse(message.deadline) - Date.parse(message.at)) / 1000;
  const end = performance.now() + whole * 1000;
  const tick = () => show(Math.max(0, (end - performance.now()) / 1000), whole);
  tick();
  return setInterval(tick, 250);
}
