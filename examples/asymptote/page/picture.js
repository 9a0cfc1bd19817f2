// The page that draws a picture: what it shows follows the messages of the task.

import { countDown, submit } from "./task.js";

const TYPES = { svg: "image/svg+xml", png: "image/png" };
const element = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));
let task, clock;

element.form.onsubmit = (event) => {
  event.preventDefault();
  const kind = element.kind.value;
  for (const name of ["notice", "figure", "said"]) element[name].hidden = true;
  working(true);
  say("Sending");
  const parameters = { source: element.source.value, kind };
  task = submit({ task_type: "picture", parameters }, (message) => hear(message, kind));
};
element.stop.onclick = () => task.cancel();

function hear(message, kind) {
  const { type } = message;
  if (type === "SUBMITTED" || type === "QUEUED") say(waiting(message));
  if (type === "STEP_START") say("Drawing");
  if (message.deadline) tick(message);
  if (type === "JOB_COMPLETE") show(message.result, kind);
  if (type === "JOB_FAILED") say(message.code === "timeout" ? "Its time was over" : `It failed: ${message.message}`);
  if (type === "CANCELLED") say("Stopped");
  if (type === "ERROR") say(`Refused: ${message.problem.detail}`);
  if (type === "LOST") say("The connection was lost, and with it the task: draw again");
  if (["JOB_COMPLETE", "JOB_FAILED", "CANCELLED", "ERROR", "LOST"].includes(type)) working(false);
}

function waiting({ queue_position, estimate }) {
  const place = queue_position ? `number ${queue_position} in the queue` : "in the queue";
  const about = estimate ? `, about ${Math.ceil(estimate.p50_seconds)} s` : "";
  return `Waiting: ${place}${about}`;
}

function tick(message) {
  clearInterval(clock);
  element.deadline.hidden = false;
  clock = countDown(message, (left, whole) => {
    [element.time.max, element.time.value] = [whole, left];
    element.left.textContent = `${Math.ceil(left)} s left`;
  });
}

function show({ picture, said, stopped }, kind) {
  if (picture) {
    URL.revokeObjectURL(element.picture.src);
    const bytes = Uint8Array.from(atob(picture), (character) => character.charCodeAt(0));
    // As an image, an SVG runs no script of its own.
    element.picture.src = element.download.href = URL.createObjectURL(new Blob([bytes], { type: TYPES[kind] }));
    element.download.download = `picture.${kind}`;
    element.figure.hidden = false;
  }
  element.said.textContent = said;
  element.said.hidden = !said;
  say(picture ? "Drawn" : stopped ? `Ended: ${stopped}` : said ? "No picture:" : "The source draws nothing");
}

function say(text) {
  element.state.textContent = text;
}

function working(is) {
  element.draw.disabled = is;
  element.stop.disabled = !is;
  if (!is) {
    clearInterval(clock);
    element.deadline.hidden = true;
  }
}
