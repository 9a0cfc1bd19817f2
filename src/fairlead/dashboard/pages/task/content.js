// Parameters and results may be private: they are shown when somebody asks for them.
import { bytes, plural } from "../../lib/format.js";
import { html, useSignal } from "../../lib/ui.js";

export function Content({ title, value }) {
  const open = useSignal(false);
  const text = JSON.stringify(value, null, 2) ?? "null";
  const size = new TextEncoder().encode(JSON.stringify(value) ?? "").length;
  const fields = value && typeof value === "object" && !Array.isArray(value) ? plural(Object.keys(value).length, "field") : "One value";
  return html`
    <section class="panel c4">
      <div class="hd"><h2>${title}</h2><span class="sub">${open.value ? "" : "hidden"}</span></div>
      ${open.value ? html`<pre tabindex="0" aria-label=${title}>${text}</pre>` : html`<p class="mut">${fields}, ${bytes(size)}.</p>`}
      <div class="btns"><button class="btn sm" onClick=${() => { open.value = !open.value; }}>${open.value ? "Hide" : "Show"} ${title.toLowerCase()}</button></div>
    </section>`;
}
