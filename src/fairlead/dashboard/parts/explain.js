// A sentence of the API that explains a wait: the cause in ink, the connecting words lighter.
import { time } from "../lib/format.js";
import { html } from "../lib/ui.js";

const FACT = /('[^']{1,200}'|\b\d[\d.,:]* ?(?:s|min|h|d|%|ms)\b|\b\d{1,2}:\d{2}(?::\d{2})?\b)/;
const UTC = /\b(\d{2}):(\d{2}):(\d{2}) UTC\b/g;
const NAMED = /\b([\w.:-]*[A-Za-z][\w.:-]*?)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/g; // a worker with a name
const UUID = /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{6}([0-9a-f]{6})\b/g;

/** Names that are quoted or among `names` are facts, and so are numbers with units. */
export function Explain({ sentence, names = [] }) {
  const facts = names.length ? new RegExp(`${FACT.source}|(?<![\\w-])(${names.map(escaped).join("|")})(?![\\w-])`, "g") : new RegExp(FACT, "g");
  return html`<p class="say">${parts(readable(sentence), facts).map(([text, isFact]) =>
    isFact ? html`<b>${text.replace(/^'|'$/g, "")}</b>` : html`<span class="mut">${text}</span>`)}</p>`;
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** In the time of the reader, and with ids that can be told apart at a glance. */
function readable(sentence) {
  return sentence
    .replace(UTC, (_, h, m, s) => {
      const now = new Date();
      return time(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate(), h, m, s));
    })
    .replace(NAMED, "$1")
    .replace(UUID, "…$1")
    .replace(/\s/g, " ");
}

function parts(text, facts) {
  const found = [];
  let end = 0;
  for (const fact of text.matchAll(facts)) {
    found.push([text.slice(end, fact.index), false], [fact[0], true]);
    end = fact.index + fact[0].length;
  }
  return [...found, [text.slice(end), false]];
}
