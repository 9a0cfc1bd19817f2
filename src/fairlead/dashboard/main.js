// The dashboard begins here: who is asking, then the page of the address inside the shell.
import { loadSession, may, session } from "./lib/api.js";
import { listenToKeys } from "./lib/keys.js";
import { startLive } from "./lib/live.js";
import { followLinks } from "./lib/router.js";
import "./lib/theme.js";
import { html, render, signal } from "./lib/ui.js";
import { Login, NothingToSee } from "./parts/login.js";
import { ProblemNotice, Waiting } from "./parts/notice.js";
import { Shell } from "./parts/shell.js";

const problem = signal(null); // why the session cannot be read

function App() {
  if (!session.value) {
    return html`<main class="alone">${problem.value ? html`<${ProblemNotice} error=${problem.value} />` : html`<${Waiting} />`}</main>`;
  }
  if (session.value.needs_key) return html`<${Login} />`;
  return may("read") ? html`<${Shell} />` : html`<${NothingToSee} />`;
}

async function begin() {
  try {
    await loadSession();
    problem.value = null;
  } catch (error) {
    problem.value = error;
    setTimeout(begin, 1000);
  }
}

followLinks();
listenToKeys();
startLive();
render(html`<${App} />`, document.getElementById("app"));
begin();
