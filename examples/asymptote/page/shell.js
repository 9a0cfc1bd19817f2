// The page that converses with Asymptote. The session ends with the page, and Asymptote with it.

import "./drawing.js";
import { isLast, opened, submit } from "./task.js";

const element = Object.fromEntries([...document.querySelectorAll("[id]")].map((one) => [one.id, one]));
const MOST_SHOWN = 2000; // pieces of the transcript
let task, frames, lines, ended;

element.start.onclick = () => {
  [lines, frames, ended] = [[], undefined, false];
  element.transcript.replaceChildren();
  say("Starting");
  open(false, true);
  task = submit({ task_type: "shell", duration: "interactive" }, hear);
};
element.end.onclick = () => task.cancel();
element.draw.onclick = () => {
  const source = ["size(240);", ...lines, "quit"].join("\n");
  // as in the session, where lines with a mistake have no effect
  element.drawing.draw({ source, line_by_line: true }, (drawing) => {
    element.draw.disabled = drawing;
  });
};
element.form.onsubmit = (event) => {
  event.preventDefault();
  const line = element.line.value;
  if (!line.trim()) return;
  frames.send(JSON.stringify({ frame: line }));
  lines.push(line);
  print(`${line}\n`, "mine");
  element.line.value = "";
  element.draw.disabled = false;
};

function hear(message) {
  if (message.type === "SUBMITTED") converse(message.task_id);
  ended = isLast(message);
  if (!ended) return;
  say(ending(message));
  open(false, false);
}

function converse(id) {
  const socket = opened(`/ws/interactive/${id}`);
  frames = socket;
  socket.onopen = () => {
    if (ended) return; // it was halted at once
    say("");
    open(true, true);
  };
  socket.onmessage = ({ data }) => {
    if (socket !== frames) return; // of the session before
    const { type, frame, problem } = JSON.parse(data);
    if (type === "FRAME") print(frame, "answer");
    if (type === "ERROR") print(`${problem.detail}\n`, "answer");
  };
  socket.onclose = () => {
    if (socket === frames && !ended) open(false, true); // the message that ends the task is on the way
  };
}

function ending({ type, code, message, problem, result }) {
  if (type === "ERROR" && problem.code === "no_capacity") return "All back ends are busy. Try again in a moment.";
  if (type === "ERROR") return `Refused: ${problem.detail}`;
  if (code === "HALTED") return "Your session was ended because somebody needs the slot.";
  if (type === "CANCELLED") return "The session has ended.";
  if (type === "LOST") return "The connection was lost, and with it the session.";
  if (type === "JOB_COMPLETE") return result.stopped ? `Asymptote was ended: ${result.stopped}.` : "Asymptote has ended.";
  return code === "timeout" ? "The time of the session is over." : `It failed: ${message}`;
}

// Whether lines can be sent, and whether there is a session at all.
function open(listens, is) {
  element.line.disabled = element.send.disabled = !listens;
  element.start.disabled = is;
  element.end.disabled = !is;
  if (listens) element.line.focus();
}

function print(text, whose) {
  const piece = document.createElement("span");
  [piece.className, piece.textContent] = [whose, text];
  element.transcript.append(piece);
  if (element.transcript.childElementCount > MOST_SHOWN) element.transcript.firstChild.remove();
  element.transcript.scrollTop = element.transcript.scrollHeight;
}

function say(text) {
  element.session.textContent = text;
  element.session.hidden = !text;
}
