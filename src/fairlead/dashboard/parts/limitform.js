// The size of a limit: how many at a time, or how many in a time.
import { path, put, withQuery } from "../lib/api.js";
import { go } from "../lib/router.js";
import { html, useId, useSignal } from "../lib/ui.js";
import { Confirm } from "./confirm.js";

const NAME = "[A-Za-z0-9_.:\\-]+";

/** `size` is a signal with { kind, limit, rate, burst } as texts. */
export function SizeFields({ size, fixedKind }) {
  const id = useId();
  const set = (name) => (event) => { size.value = { ...size.value, [name]: event.target.value }; };
  const { kind, limit, rate, burst } = size.value;
  return html`
    ${!fixedKind && html`
      <div class="seg" role="group" aria-label="Kind">
        ${[["slots", "At a time"], ["rate", "In a time"]].map(([value, words]) => html`
          <button type="button" aria-pressed=${kind === value} onClick=${() => { size.value = { ...size.value, kind: value }; }}>${words}</button>`)}
      </div>`}
    ${kind === "slots" ? html`
      <div class="pair"><label for="${id}-limit">Units at a time; 0 pauses</label>
        <input class="field" id="${id}-limit" type="number" min="0" max="1000000000" step="1" required value=${limit} onInput=${set("limit")} /></div>` : html`
      <div class="pair"><label for="${id}-rate">Rate, such as 60/min or 5/s</label>
        <input class="field" id="${id}-rate" required maxlength="40" value=${rate} onInput=${set("rate")} autocomplete="off" /></div>
      <div class="pair"><label for="${id}-burst">At most at once (a tenth of the rate if empty)</label>
        <input class="field" id="${id}-burst" type="number" min="1" step="1" value=${burst} onInput=${set("burst")} /></div>`}`;
}

/** As the API takes it. */
export function sizeBody({ kind, limit, rate, burst }) {
  if (kind === "slots") return { limit: Number(limit) };
  return burst ? { rate: rate.trim(), burst: Number(burst) } : { rate: rate.trim() };
}

export function NewLimit({ onClose }) {
  const id = useId();
  const name = useSignal("");
  const size = useSignal({ kind: "slots", limit: "1", rate: "60/min", burst: "" });
  const create = async (reason) => {
    await put(path`/api/v1/limits/${name.value}`, { body: sizeBody(size.value), reason });
    go(`/limits/${encodeURIComponent(name.value)}`);
  };
  return html`
    <${Confirm} title="New limit" verb=${name.value ? `Create ${name.value}` : "Create"} keep="Close" asksReason act=${create} onClose=${onClose}>
      <p>Tasks that name it take units of it while they run, or wait. A limit of this name that exists is changed.</p>
      <div class="pair"><label for="${id}-name">Name</label>
        <input class="field mono" id="${id}-name" required maxlength="200" pattern=${NAME} value=${name.value} autocomplete="off" spellcheck=${false}
          title="Letters, digits and _ . : -" onInput=${(event) => { name.value = event.target.value; }} /></div>
      <${SizeFields} size=${size} />
    <//>`;
}

/** The address of a limit of the API: `tenant/name` is the limit of a tenant. */
export function limitAddress(fullName, rest = "", query = {}) {
  const slash = fullName.indexOf("/");
  const [tenant, name] = slash < 0 ? [null, fullName] : [fullName.slice(0, slash), fullName.slice(slash + 1)];
  return withQuery(path`/api/v1/limits/${name}` + rest, { tenant, ...query });
}
