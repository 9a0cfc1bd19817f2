// <task-drawing>: draws source, and shows what becomes of it as the messages of its task come.

import { CountDown, isLast, submit } from "./task.js";

const TYPES = { svg: "image/svg+xml", png: "image/png" };
const HTML = `
  <section aria-live="polite">
    <p><span id="state"></span> <span id="tier" class="badge" hidden></span></p>
    <p id="notice" class="notice" hidden></p>
  </section>
  <p id="deadline" class="row" hidden><progress id="time" aria-label="Time"></progress> <span id="left"></span></p>
  <figure id="figure" hidden>
    <img id="picture" alt="The picture">
    <figcaption><a id="download">Download</a></figcaption>
  </figure>
  <pre id="said" hidden></pre>`;

class Drawing extends HTMLElement {
  #task;
  #waits; // the place in the queue, and the estimate of the wait
  #clock = new CountDown();
  #parts;

  connectedCallback() {
    this.innerHTML = HTML;
    this.#parts = Object.fromEntries([...this.querySelectorAll("[id]")].map((one) => [one.id, one]));
  }

  // `working(is)` is called when it begins and when it has ended. No duration: as long as possible.
  draw({ duration, ...parameters }, working) {
    for (const name of ["notice", "figure", "said", "tier"]) this.#parts[name].hidden = true;
    this.#say("Sending");
    working(true);
    this.#waits = {};
    this.#task = submit({ task_type: "picture", parameters, duration }, (message) => {
      this.#hear(message, parameters.kind ?? "svg");
      if (!isLast(message)) return;
      this.#clock.stop();
      this.#parts.deadline.hidden = true;
      working(false);
    });
  }

  stop() {
    this.#task.cancel();
  }

  #hear(message, kind) {
    const { type, code, problem } = message;
    if (["SUBMITTED", "QUEUED", "ESTIMATE"].includes(type)) {
      this.#waits = { ...this.#waits, ...message };
      this.#say(waiting(this.#waits));
    }
    if (type === "STEP_START") this.#say("Drawing");
    if (message.deadline) this.#tick(message);
    if (type === "JOB_COMPLETE") this.#show(message, kind);
    if (type === "JOB_FAILED") this.#say(isLate(code) ? "Its time was over" : `It failed: ${message.message}`);
    if (type === "CANCELLED") this.#say("Stopped");
    if (type === "ERROR") this.#say(`Refused: ${problem.detail}`);
    if (type === "LOST") this.#say("The connection was lost, and with it the task: draw again");
  }

  #tick(message) {
    const { deadline, time, left, tier, notice } = this.#parts;
    deadline.hidden = false;
    const seconds = this.#clock.hear(message, (still, whole) => {
      [time.max, time.value] = [whole, still];
      left.textContent = `${still.toFixed(1)} s left`;
    });
    if (!message.tier) return;
    [tier.hidden, tier.textContent] = [false, message.tier];
    if (message.type !== "DOWNGRADED") return;
    notice.hidden = false;
    notice.textContent = `Shortened to ${Math.round(seconds)} s because others are waiting`;
  }

  #show({ result: { picture, said, stopped }, truncated }, kind) {
    const { picture: image, download, figure, said: text } = this.#parts;
    if (picture) {
      URL.revokeObjectURL(image.src);
      const bytes = Uint8Array.from(atob(picture), (character) => character.charCodeAt(0));
      // As an image, an SVG runs no script of its own.
      image.src = download.href = URL.createObjectURL(new Blob([bytes], { type: TYPES[kind] }));
      download.download = `picture.${kind}`;
      figure.hidden = false;
    }
    text.textContent = said;
    text.hidden = !said;
    if (truncated && !picture) this.#say(`Its time was over${said ? "; until then it wrote:" : ""}`);
    else this.#say(picture ? "Drawn" : stopped ? `Ended: ${stopped}` : said ? "No picture:" : "The source draws nothing");
  }

  #say(text) {
    this.#parts.state.textContent = text;
  }
}

function waiting({ queue_position, estimate }) {
  const place = queue_position ? `number ${queue_position} in the queue` : "in the queue";
  const about = estimate ? `, about ${Math.ceil(estimate.p50_seconds)} s` : "";
  return `Waiting: ${place}${about}`;
}

// At the end of its tier, or at its timeout.
function isLate(code) {
  return code === "DEADLINE" || code === "timeout";
}

customElements.define("task-drawing", Drawing);
