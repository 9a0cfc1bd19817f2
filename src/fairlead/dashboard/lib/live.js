// What is new: one stream of the namespace, and values that are read again with each of its messages.
import { get, loadSession, session } from "./api.js";
import { Feed } from "./feed.js";
import { effect, signal, useEffect, useSignal } from "./ui.js";

const FIRST_PAUSE = 500; // ms
const LONGEST_PAUSE = 5_000;
const REST = 20; // times as long as a read took, until it is repeated: no page keeps the gateway busy

/** The latest message of the stream; null until there is one. */
export const overview = signal(null);
/** Grows with each message, and when something was changed here: whoever shows something reads it again. */
export const frame = signal(0);
/** `connecting`, `live` or `stale`, since when, and what the gateway says about it. */
export const connection = signal({ state: "connecting", since: Date.now(), problem: null });
/** The gateway's time in ms, once a second; it stops while nothing is live. */
export const clock = signal(Date.now());

let ahead = 0; // ms by which the gateway's clock is ahead of ours
let feed = null;
let who = null; // whose overview it is
let pause = FIRST_PAUSE;
let retry = 0;
let isUrgent = false;

export const serverNow = () => Date.now() + ahead;

/** After an action: shows what it has changed at once. */
export function refresh() {
  isUrgent = true;
  frame.value += 1;
  isUrgent = false;
}

/** Streams while the window is visible: a browser has few connections to a host, for all of its tabs. */
export function startLive() {
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && follow());
  effect(() => {
    session.value;
    follow();
  });
  setInterval(() => {
    if (connection.peek().state !== "stale") clock.value = serverNow();
  }, 1000);
}

function follow() {
  close();
  const known = session.peek();
  const of = known && [known.namespace, known.csrf_token].join(" ");
  if (of !== who) overview.value = null; // what somebody else saw is not shown for a moment
  who = of;
  if (!document.hidden && known?.needs_key === false) feed = new Feed(of, received, lost);
}

function received(message) {
  pause = FIRST_PAUSE;
  const late = Date.parse(message.at) - Date.now();
  // a message that was delayed makes the gateway look behind: the least delayed one is right
  ahead = Math.abs(late - ahead) > 2000 ? late : Math.max(ahead, late);
  overview.value = message;
  clock.value = serverNow();
  note("live");
  frame.value += 1;
}

function lost(problem) {
  close();
  note("stale", problem?.status ? problem : null);
  retry = setTimeout(reconnect, pause);
  pause = Math.min(LONGEST_PAUSE, pause * 2);
}

/** The session may have ended meanwhile: then there is nothing to connect to. */
async function reconnect() {
  try {
    await loadSession(); // follows, because the session was set
  } catch {
    lost();
  }
}

function close() {
  clearTimeout(retry);
  feed?.end();
  feed = null;
}

function note(state, problem = null) {
  const known = connection.peek();
  if (known.state !== state) connection.value = { state, since: Date.now(), problem };
  else if (known.problem?.message !== problem?.message) connection.value = { ...known, problem };
}

/**
 * What is at this address, read again with every message: { data, error }. Old data stays while it is read again,
 * and when that fails. A null address reads nothing; `live: false` reads once; `every` is the least ms between reads.
 */
export function useResource(address, { live = true, every = 0 } = {}) {
  const found = useSignal({ address: null });
  useEffect(() => {
    if (!address) return undefined;
    const reader = new Reader(address, found, every);
    if (!live) reader.read();
    const stop = live ? frame.subscribe(() => reader.read()) : () => {};
    return () => {
      stop();
      reader.end();
    };
  }, [address, live]);
  const { data, error, address: of } = found.value;
  return of === address ? { data, error } : { data: undefined, error: null };
}

/** When something is read again: never twice at the same time, and what is expensive less often. */
export class Pace {
  #due = 0;
  #timer = 0;
  #busy = false;
  #again = false;
  #over = false;

  /** `work()` returns a promise; `every` is the least ms from one beginning to the next. */
  constructor(work, every = 0) {
    this.work = work;
    this.every = every;
  }

  /** Now, or as soon as it may be. */
  async run() {
    if (this.#over) return;
    clearTimeout(this.#timer);
    const wait = isUrgent ? 0 : this.#due - performance.now();
    if (this.#busy) {
      this.#again = true;
    } else if (wait > 0) {
      if (wait < Infinity) this.#timer = setTimeout(() => this.run(), wait);
    } else {
      this.#busy = true;
      this.#again = false;
      const began = performance.now();
      await this.work();
      const took = performance.now() - began;
      this.#due = began + Math.max(this.every, Math.min(LONGEST_PAUSE, REST * took));
      this.#busy = false;
      if (this.#again) this.run();
    }
  }

  end() {
    this.#over = true;
    clearTimeout(this.#timer);
  }
}

/** Reads one address. */
class Reader {
  #controller = new AbortController();
  #pace;

  constructor(address, found, every) {
    this.address = address;
    this.found = found;
    this.#pace = new Pace(() => this.#get(), every);
  }

  end() {
    this.#controller.abort();
    this.#pace.end();
  }

  read() {
    this.#pace.run();
  }

  async #get() {
    try {
      this.#show({ data: await get(this.address, { signal: this.#controller.signal }), error: null });
    } catch (error) {
      if (error.name !== "AbortError") this.#show({ error });
      if (error.status === 404) this.#pace.every = Infinity; // it will not appear
    }
  }

  #show(news) {
    if (this.#controller.signal.aborted) return;
    const old = this.found.peek();
    const data = old.address === this.address ? old.data : undefined;
    this.found.value = { data, ...news, address: this.address };
  }
}
