// An empty page says what it is for, and the command that fills it.
import { html, useSignal } from "../lib/ui.js";

export function Empty({ title, command, children }) {
  return html`
    <div class="empty">
      <p>${title}</p>
      ${command && html`<${Command} text=${command} />`}
      ${children}
    </div>`;
}

export function Command({ text }) {
  const copied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    copied.value = true;
  };
  return html`
    <div class="command">
      <pre tabindex="0" aria-label="Command">${text}</pre>
      ${navigator.clipboard && html`<button class="btn sm" onClick=${copy}>${copied.value ? "Copied" : "Copy"}</button>`}
    </div>`;
}
