// A question in place, under the button that asked: what will happen, to how many, what will not, and why.
import { refresh } from "../lib/live.js";
import { html, useEffect, useId, useRef, useSignal } from "../lib/ui.js";
import { ProblemNotice } from "./notice.js";
import { useKeys } from "../lib/keys.js";

/**
 * `verb` names the act and its object ("Pause image_gen"), `keep` the way out. `act(reason)` returns a promise.
 * `danger`: it cannot be undone. `asksReason`: the act is recorded in the audit log. `children` are further fields.
 */
export function Confirm({ title, verb, keep = "Leave it", danger, asksReason, act, onClose, children, disabled }) {
  const id = useId();
  const first = useRef();
  const reason = useRef();
  const state = useSignal({ busy: false, error: null });
  useKeys({ Escape: ["leave it", onClose] });
  useEffect(() => first.current?.querySelector("input:not([type=hidden]), select, textarea, button")?.focus(), []);
  const confirm = async (event) => {
    event.preventDefault();
    state.value = { busy: true, error: null };
    try {
      await act(reason.current?.value ?? "");
      refresh();
      onClose();
    } catch (error) {
      state.value = { busy: false, error };
    }
  };
  return html`
    <form class="confirm" ref=${first} onSubmit=${confirm} role="group" aria-labelledby="${id}-title">
      <h3 id="${id}-title">${title}</h3>
      <div class="what">${children}</div>
      ${asksReason && html`
        <label for="${id}-reason">Reason, kept in the audit log</label>
        <input class="field" id="${id}-reason" ref=${reason} maxlength="200" autocomplete="off" />`}
      ${state.value.error && html`<${ProblemNotice} error=${state.value.error} />`}
      <div class="btns">
        <button class="btn ${danger ? "danger solid" : "primary"}" disabled=${disabled || state.value.busy}>${verb}</button>
        <button class="btn" type="button" onClick=${onClose}>${keep}</button>
      </div>
    </form>`;
}
