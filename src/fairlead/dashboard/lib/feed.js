// The stream of the namespace, for all windows of a browser: one of them reads it, and tells the others.
//
// A browser has six connections to a host, however many windows; and each stream costs the gateway something.
import { readStream } from "./api.js";

const ASKS = 150; // ms in which another window answers
const SILENCE = 12_000; // ms; the gateway speaks at least every 5 s
const FOLLOWS = 7_000; // ms without a word, after which another window reads by itself
const SPREAD = 1_000; // ms, so that not all windows begin at the same time

export class Feed {
  #channel = new BroadcastChannel("fairlead-overview");
  #id = `${performance.timeOrigin} ${Math.random()}`; // the window that is open for longest goes on
  #controller = null; // while this window reads
  #latest = null; // what it has read
  #timer = 0;

  /** `of`: whose messages, because windows may differ in their session. `received(message)`, `lost(error)`. */
  constructor(of, received, lost) {
    Object.assign(this, { of, received, lost });
    this.#channel.onmessage = (event) => event.data.of === of && this.#heard(event.data);
    this.#say({ asks: true });
    this.#later(ASKS, () => this.#read());
  }

  end() {
    if (this.#controller) this.#say({ ends: true });
    this.#stop();
    this.#channel.close();
  }

  #heard({ from, asks, ends, message }) {
    if (asks) {
      if (this.#latest) this.#say({ message: this.#latest });
    } else if (ends) {
      if (!this.#controller) this.#later(SPREAD * Math.random(), () => this.#read());
    } else if (!this.#latest || from < this.#id) {
      this.#stop();
      this.#later(FOLLOWS + SPREAD * Math.random(), () => this.#read());
      this.received(message);
    } // else both read, and the other stops when it hears this one
  }

  async #read() {
    const controller = new AbortController();
    this.#controller = controller;
    const lost = (error) => {
      if (controller.signal.aborted) return;
      this.end();
      this.lost(error);
    };
    this.#later(SILENCE, lost);
    try {
      await readStream("/api/v1/overview/events", (message) => {
        if (controller.signal.aborted) return;
        this.#latest = message;
        this.#later(SILENCE, lost);
        this.#say({ message });
        this.received(message);
      }, controller.signal);
      lost(null);
    } catch (error) {
      lost(error);
    }
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#controller?.abort();
    this.#controller = this.#latest = null;
  }

  #later(pause, act) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, pause);
  }

  #say(what) {
    this.#channel.postMessage({ of: this.of, from: this.#id, ...what });
  }
}
