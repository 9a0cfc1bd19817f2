// Filters of a list. Each is in the address, so that a link shows the same.
import { queried, setQuery } from "../lib/router.js";
import { html, useEffect, useId, useRef } from "../lib/ui.js";

const PAUSE = 250; // ms without a key, before it is searched

export function Search({ label, name = "q" }) {
  const id = useId();
  const field = useRef();
  const timer = useRef(0);
  const value = queried(name);
  useEffect(() => {
    if (document.activeElement !== field.current) field.current.value = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = () => setQuery({ [name]: field.current.value.trim() }, { replace: true });
  const type = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(search, PAUSE);
  };
  const key = (event) => {
    if (event.key === "Escape") {
      field.current.blur();
      event.stopPropagation(); // it closes nothing else
    }
    if (event.key === "Enter") search();
  };
  return html`
    <label class="vh" for=${id}>${label}</label>
    <input class="field" id=${id} ref=${field} type="search" placeholder=${label} maxlength="200"
      autocomplete="off" spellcheck=${false} onInput=${type} onKeyDown=${key} />`;
}

/** `options`: [[value, words]]; the first one is the default, and is not in the address. */
export function Chips({ label, name, options }) {
  const chosen = queried(name, options[0][0]);
  const choose = (value) => setQuery({ [name]: value === options[0][0] ? "" : value });
  return html`
    <div class="chips" role="group" aria-label=${label}>
      ${options.map(([value, words]) => html`
        <button key=${value} aria-pressed=${value === chosen} onClick=${() => choose(value)}>${words}</button>`)}
    </div>`;
}

export function Select({ label, name, options }) {
  const id = useId();
  const chosen = queried(name, options[0][0]);
  const choose = (event) => setQuery({ [name]: event.target.value === options[0][0] ? "" : event.target.value });
  return html`
    <label class="vh" for=${id}>${label}</label>
    <select class="field" id=${id} value=${chosen} onChange=${choose}>
      ${options.map(([value, words]) => html`<option key=${value} value=${value} selected=${value === chosen}>${words}</option>`)}
    </select>`;
}

/** Exact values that a link has set, each with a way to leave it out. */
export function Pinned({ names }) {
  const set = names.filter(([name]) => queried(name));
  if (!set.length) return null;
  return html`
    <div class="chips pinned">
      ${set.map(([name, words]) => html`
        <button key=${name} aria-pressed="true" onClick=${() => setQuery({ [name]: "" })}>
          ${words} ${queried(name)} <span aria-hidden="true">✕</span><span class="vh">leave out</span></button>`)}
    </div>`;
}
