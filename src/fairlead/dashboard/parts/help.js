// The keys that work now, over the page.
import { bindings, useKeys } from "../lib/keys.js";
import { html, useEffect, useRef } from "../lib/ui.js";

export function Help({ onClose }) {
  const dialog = useRef();
  useKeys({ Escape: ["close", onClose] });
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`
    <dialog class="help" ref=${dialog} onClose=${onClose} aria-labelledby="help-title"
      onClick=${(event) => event.target === dialog.current && onClose()}>
      <h2 id="help-title">Keys</h2>
      <dl>
        ${Object.entries(known()).map(([key, [words]]) => html`
          <div><dt>${key.split(" ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${words}</dd></div>`)}
      </dl>
      <button class="btn" onClick=${onClose}>Close</button>
    </dialog>`;
}

/** The latest binding of a key counts. */
const known = () => Object.assign({}, ...bindings.value.map((binding) => binding.of.current));
