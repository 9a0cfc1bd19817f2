// A list, and beside it what was chosen in it; in a narrow window one at a time.
import { useKeys } from "../lib/keys.js";
import { go, place } from "../lib/router.js";
import { html, useEffect } from "../lib/ui.js";

/** The address of a page with the filters of this one. */
export function withFilters(path) {
  const query = place.value.query.toString();
  return query ? `${path}?${query}` : path;
}

/** `lede`: the headline; `filters` and `list`; `detail`, or nothing. */
export function Master({ lede, filters, list, detail }) {
  return html`
    <div class=${detail ? "master opened" : "master"}>
      ${lede}
      <div class=${detail ? "md" : "md one"}>
        <div class="md-list">${filters}${list}</div>
        ${detail}
      </div>
    </div>`;
}

/** What was chosen: `actions` are buttons beside the title, `back` is where the list is. */
export function Detail({ title, sub, actions, back, backTitle, children }) {
  const close = withFilters(back);
  useEffect(() => {
    const before = document.title;
    document.title = `${title} · Fairlead`;
    return () => { document.title = before; };
  }, [title]);
  useKeys({ Escape: ["close", () => go(close, { keep: true })] });
  return html`
    <section class="panel detail" aria-label=${title}>
      <p class="crumb narrow-only"><a href=${close}>← ${backTitle}</a></p>
      <div class="hd tight">
        <div class="titled"><h2 class="big">${title}</h2>${sub && html`<p class="mut">${sub}</p>`}</div>
        <div class="btns">${actions}<a class="btn sm wide-only" href=${close} aria-label="Close">✕</a></div>
      </div>
      ${children}
    </section>`;
}

/** A part of a detail, below a line. */
export function Section({ title, sub, children }) {
  return html`
    <div class="sec">
      <div class="hd"><h3>${title}</h3>${sub && html`<span class="sub">${sub}</span>`}</div>
      ${children}
    </div>`;
}

/** The headline that says what matters now, a line below it, and the main action of the page. */
export function Lede({ title, children, action }) {
  return html`
    <div class="lede">
      <div><h1>${title}</h1>${children && html`<p>${children}</p>`}</div>
      ${action}
    </div>`;
}

/** A button that asks before it acts; `asked` is the signal that has the name of what is asked. */
export function Ask({ asked, name, danger, primary, hint, children }) {
  const kind = ["btn", primary ? "primary" : "sm", danger && "danger"].filter(Boolean).join(" ");
  return html`
    <button class=${kind} aria-expanded=${asked.value === name}
      onClick=${() => { asked.value = asked.value === name ? null : name; }}>${children}${hint && html` <kbd>${hint}</kbd>`}</button>`;
}
