// A list of any length, page by page: the first page is live, and the others are read again in turns.
import { get, withQuery } from "./api.js";
import { frame, Pace } from "./live.js";
import { useEffect, useRef, useSignal } from "./ui.js";

const FIRST_SIZE = 100; // it is read again every second
const SIZE = 200;
const MOST_PUSHED_OUT = 1_000; // rows that are remembered though no page has them
const MOST_EMPTY = 20; // pages in a row: a search may look at many things that it does not mean
const MOST_PAGES = 60; // of a list that is filtered here, and therefore read to its end

/**
 * `rowsOf(answer)` are the rows of a page, `keyOf(row)` their ids: { rows, first, error, isWhole, hasGap, more }. `rows`
 * is undefined until one is found, or until it is known that there is none; `first` is the answer of the first page,
 * and `more()` reads one page more. `all`: to the end. `hasGap`: new rows came faster than they could be read, so some
 * between the first page and the others are missing.
 */
export function usePages(address, params, { rowsOf, keyOf, all = false }) {
  const found = useSignal({ of: null });
  const pager = useRef();
  const of = withQuery(address, params);
  useEffect(() => {
    const made = new Pager(address, params, rowsOf, keyOf, (news) => { found.value = { of, ...news }; });
    pager.current = made;
    const stop = frame.subscribe(() => made.refresh());
    return () => {
      stop();
      made.end();
    };
  }, [of]);
  const known = found.value.of === of ? found.value : {};
  useEffect(() => {
    if (all && known.rows && !known.isWhole && known.count < MOST_PAGES) pager.current?.more();
  }, [all, known.count]);
  return { ...known, more: () => pager.current?.more() };
}

class Pager {
  #pages = [{ cursor: "", rows: undefined, next: null }];
  #controller = new AbortController();
  #turn = 0;
  #work = null;
  #isAsked = false;
  #pace = new Pace(() => this.#readAgain());
  #first = null;
  #hasGap = false;

  constructor(address, params, rowsOf, keyOf, show) {
    Object.assign(this, { address, params, rowsOf, keyOf, show });
  }

  end() {
    this.#controller.abort();
    this.#pace.end();
  }

  refresh() {
    this.#pace.run();
  }

  /** The first page, and one of the others. */
  async #readAgain() {
    await this.#exclusively(async () => {
      await this.#read(0);
      if (this.#pages.every((page) => !page.rows.length)) await this.#readOn();
      else if (this.#pages.length > 1) {
        this.#turn = (this.#turn % (this.#pages.length - 1)) + 1;
        await this.#read(this.#turn);
      }
    });
  }

  async more() {
    if (this.#isAsked || !this.#pages.at(-1).next) return;
    this.#isAsked = true;
    await this.#exclusively(() => this.#readOn());
    this.#isAsked = false;
  }

  /** A page may be empty although there is more: then the search goes on. */
  async #readOn() {
    for (let empty = 0; empty < MOST_EMPTY && this.#pages.at(-1).next; empty += 1) {
      this.#pages.push({ cursor: this.#pages.at(-1).next, rows: [], next: null });
      await this.#read(this.#pages.length - 1);
      if (this.#pages.at(-1).rows.length) return;
    }
  }

  /** One after the other, because each changes the pages; then tells what there is. */
  async #exclusively(work) {
    while (this.#work) await this.#work;
    this.#work = work().then(() => this.#tell(null), (error) => error.name === "AbortError" || this.#tell(error));
    await this.#work;
    this.#work = null;
  }

  async #read(number) {
    const page = this.#pages[number];
    const address = withQuery(this.address, { ...this.params, limit: number === 0 ? FIRST_SIZE : SIZE, cursor: page.cursor });
    const answer = await get(address, { signal: this.#controller.signal });
    const rows = this.rowsOf(answer);
    if (number === 0) this.#first = answer;
    const isLast = number === this.#pages.length - 1;
    page.rows = isLast || number > 0 ? rows : this.#withPushedOut(page.rows, rows);
    if (isLast) page.next = answer.next_cursor ?? null;
  }

  /** What came before the first page pushes rows out of it that no other page has. */
  #withPushedOut(old, rows) {
    const keys = new Set(rows.map(this.keyOf));
    const last = rows.length ? old.findIndex((row) => this.keyOf(row) === this.keyOf(rows.at(-1))) : -1;
    const pushedOut = last < 0 ? [] : old.slice(last + 1).filter((row) => !keys.has(this.keyOf(row)));
    const others = new Set(this.#pages.flatMap((page) => page.rows).map(this.keyOf));
    const allAreNew = old.length > 0 && rows.length > 0 && !rows.some((row) => others.has(this.keyOf(row)));
    this.#hasGap ||= allAreNew || pushedOut.length > MOST_PUSHED_OUT;
    return [...rows, ...pushedOut.slice(0, MOST_PUSHED_OUT)];
  }

  #tell(error) {
    if (this.#controller.signal.aborted) return;
    const seen = new Set();
    const rows = this.#pages[0].rows && this.#pages.flatMap((page) => page.rows).filter((row) => {
      const key = this.keyOf(row);
      return !seen.has(key) && seen.add(key);
    });
    const isWhole = !this.#pages.at(-1).next;
    const isSearching = rows?.length === 0 && !isWhole; // nobody knows yet whether there is any
    this.show({ rows: isSearching ? undefined : rows, first: this.#first, error, isWhole, hasGap: this.#hasGap, count: this.#pages.length });
  }
}
