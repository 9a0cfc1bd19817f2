// A traceback: own frames bold, frames of libraries folded, the last line red.
import { html, useSignal } from "../lib/ui.js";

const FRAME = /^\s*File "([^"]+)", line \d+/;
const LIBRARY = /site-packages|dist-packages|\/lib\/python\d|<frozen /;

export function Traceback({ text }) {
  const all = useSignal(false);
  const parts = parsed(text.trimEnd().split("\n"));
  const folded = parts.filter((part) => part.isLibrary).length;
  return html`
    <pre class="traceback" tabindex="0" aria-label="Traceback">${parts.map((part) =>
      part.isLibrary && !all.value ? null : html`<span class=${part.kind}>${part.lines.join("\n")}${"\n"}</span>`)}</pre>
    ${folded > 0 && html`
      <div class="btns"><button class="btn sm" onClick=${() => { all.value = !all.value; }}>
        ${all.value ? "Fold" : "Show"} ${folded} ${folded === 1 ? "frame" : "frames"} of libraries</button></div>`}`;
}

/** Frames with their source lines, and what is between them; the last part names the error. */
function parsed(lines) {
  const parts = [];
  for (const line of lines) {
    const frame = FRAME.exec(line);
    const last = parts.at(-1);
    if (frame) {
      const isLibrary = LIBRARY.test(frame[1]);
      parts.push({ kind: isLibrary ? "" : "own", isLibrary, isFrame: true, lines: [line] });
    } else if (last?.isFrame && /^\s{4,}/.test(line)) last.lines.push(line);
    else parts.push({ kind: "", isLibrary: false, lines: [line] });
  }
  const last = parts.at(-1);
  if (last && !last.isFrame) last.kind = "err";
  return parts;
}
