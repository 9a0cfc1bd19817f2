// The key is sent once, in exchange for a session that scripts cannot read; it is kept nowhere here.
import { logIn, logOut, session } from "../lib/api.js";
import { html, useEffect, useRef, useSignal } from "../lib/ui.js";
import { Mark } from "./marks.js";
import { ProblemNotice } from "./notice.js";

export function Login() {
  const field = useRef();
  const problem = useSignal(null);
  const busy = useSignal(false);
  useEffect(() => {
    document.title = "Log in · Fairlead";
    field.current.focus();
  }, []);
  const send = async (event) => {
    event.preventDefault();
    busy.value = true;
    try {
      await logIn(field.current.value.trim());
    } catch (error) {
      problem.value = error;
      field.current?.select();
    }
    busy.value = false;
  };
  return html`
    <main class="alone">
      <p class="brand"><${Mark} />Fairlead</p>
      <h1>Log in to Fairlead</h1>
      <p class="mut">This gateway requires a key. <code>fairlead key create --name me --scope read</code> makes one for looking only.</p>
      ${problem.value && html`<${ProblemNotice} error=${problem.value} />`}
      <form onSubmit=${send}>
        <input type="text" name="username" value="fairlead" autocomplete="username" hidden readonly />
        <label for="key">Key</label>
        <input class="field mono" id="key" name="key" type="password" ref=${field} required autocomplete="current-password"
          placeholder="flk_…" spellcheck="false" />
        <button class="btn primary" disabled=${busy.value}>Log in</button>
      </form>
      <p class="sub">The session ends after 12 hours, when you log out, or when the key is revoked.</p>
    </main>`;
}

/** A key of a worker, or one that only submits. */
export function NothingToSee() {
  return html`
    <main class="alone">
      <h1>This key may not read</h1>
      <p class="mut">${session.value.name} lacks the scope <code>read</code>, so there is nothing to show. Log in with another key.</p>
      <button class="btn primary" onClick=${logOut}>Log out</button>
    </main>`;
}
