// A sentence of the API that explains a wait: the cause in ink, the connecting words lighter.
import { html } from "../lib/ui.js";

const STRONG = /('[^']{1,200}'|\b\d[\d.,:]* ?(?:s|min|h|d|%|ms)\b|\b\d{1,2}:\d{2}(?::\d{2})?\b)/g;

/** Names are quoted in the sentence, and numbers have units: those are the facts. */
export function Explain({ sentence }) {
  return html`
    <p class="say">${sentence.split(STRONG).map((part, i) =>
      i % 2 ? html`<b>${part.replace(/^'|'$/g, "")}</b>` : html`<span class="mut">${part}</span>`)}</p>`;
}
