// What surrounds every page: the side bar, whether it is live, the keys, and the page itself.
import { chooseNamespace, isOperator, logOut, may, session } from "../lib/api.js";
import { time } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { clock, connection, overview } from "../lib/live.js";
import { go, place } from "../lib/router.js";
import { switchTheme } from "../lib/theme.js";
import { html, useEffect, useRef, useSignal, useSignalEffect } from "../lib/ui.js";
import { PAGES, pageAt } from "../pages/index.js";
import { Empty } from "./empty.js";
import { Help } from "./help.js";
import { Mark } from "./marks.js";
import { ProblemNotice, Waiting } from "./notice.js";

export function Shell() {
  const helps = useSignal(false);
  const found = pageAt(place.value.path);
  useKeys({
    ...Object.fromEntries(shown().map((page) => [`g ${page.key}`, [page.title, () => go(page.path)]])),
    t: ["switch between light and dark", switchTheme],
    "/": ["search", () => focusSearch()],
    "?": ["show or hide these keys", () => { helps.value = !helps.value; }],
  });
  return html`
    <a class="skip" href="#page">Skip to the page</a>
    <div class="shell">
      <${SideBar} at=${found?.page} onHelp=${() => { helps.value = true; }} />
      <main class="main" id="page" tabindex="-1">
        ${connection.value.problem && html`<${ProblemNotice} error=${connection.value.problem} />`}
        ${found ? html`<${Page} ...${found} key=${found.page.name} />` : html`<${NoPage} />`}
      </main>
    </div>
    ${helps.value && html`<${Help} onClose=${() => { helps.value = false; }} />`}
  `;
}

const shown = () => PAGES.filter((page) => page.title && (isOperator() || !page.forOperators) && (!page.scope || may(page.scope)));

function focusSearch() {
  const field = document.querySelector("input[type=search]");
  field?.focus();
  return Boolean(field);
}

function SideBar({ at, onHelp }) {
  const counts = useCounts();
  const here = at?.under ?? at?.name;
  const bar = useRef();
  useEffect(() => { // on a phone the tabs scroll sideways
    const link = bar.current.querySelector("[aria-current]");
    if (link) bar.current.scrollLeft = link.offsetLeft - (bar.current.clientWidth - link.offsetWidth) / 2;
  }, [here]);
  return html`
    <header class="side">
      <a class="brand" href="/"><${Mark} />Fairlead</a>
      <nav aria-label="Pages" ref=${bar}>
        <ul class="nav">
          ${shown().map((page) => html`
            <li class=${page.gap && "gap"}>
              <a href=${page.path} aria-current=${page.name === here ? "page" : undefined}>
                ${page.title}<${Count} of=${page} number=${counts[page.count]} />
              </a>
            </li>`)}
        </ul>
      </nav>
      <div class="foot">
        <${Who} />
        <${Live} />
        <span class="tools">
          <button class="btn sm" onClick=${switchTheme} aria-label="Switch between light and dark">◐</button>
          <button class="btn sm hide-s" onClick=${onHelp} aria-label="Keys">?</button>
        </span>
      </div>
    </header>`;
}

function Count({ of: page, number }) {
  if (!number) return null;
  const bad = page.count === "dead_letters";
  return html`<span class=${bad ? "n bad" : "n"}>${number.toLocaleString("en")}</span>`;
}

/** By the names that pages use: how many there are, as far as the caller may know. */
function useCounts() {
  if (!overview.value) return {};
  const { stats, counts } = overview.value;
  const waiting = Object.values(stats.queues).reduce((sum, queue) => sum + queue.depth, stats.delayed);
  const { active, draining } = stats.workers;
  return { ...counts, tasks: waiting + stats.workers.used_capacity, workers: (active ?? 0) + (draining ?? 0) };
}

function Who() {
  const { name, tenant, namespace, namespaces, scopes, csrf_token } = session.value;
  const rights = scopes.includes("admin") ? "admin" : scopes.includes("cancel") ? "operator" : "read only";
  return html`
    <span class="who">
      ${namespaces.length > 1 ? html`
        <select class="field" aria-label="Namespace" onChange=${(event) => chooseNamespace(event.target.value)}>
          ${namespaces.map((one) => html`<option key=${one} value=${one} selected=${one === namespace}>${one}</option>`)}
        </select>` : html`<b>${namespace}</b>`}
      <span>${tenant ? `tenant ${tenant}` : "all tenants"} · ${csrf_token ? `${name}, ${rights}` : "no keys"}</span>
      ${csrf_token && html`<button class="plain" onClick=${logOut}>Log out</button>`}
    </span>`;
}

function Live() {
  const { state, since } = connection.value;
  if (state === "live") {
    return html`<span class="live" role="status"><span class="dot"></span>Live
      <span class="hide-s dim" aria-hidden="true">${time(clock.value)}</span></span>`;
  }
  const words = state === "stale" ? `Not live since ${time(since)}, trying again` : "Connecting";
  return html`<span class="live" role="status"><span class="dot warn"></span>${words}</span>`;
}

/** The module of a page is loaded when it is first shown. */
function Page({ page, params }) {
  const loaded = useSignal({});
  useEffect(() => {
    page.load().then(
      (module) => { loaded.value = { Component: module.default }; },
      (error) => { loaded.value = { error }; },
    );
  }, [page]);
  useSignalEffect(() => {
    // a browser does not fetch a module again that it could not get once
    if (loaded.value.error && connection.value.state === "live") setTimeout(() => location.reload(), 2000);
  });
  useEffect(() => {
    if (page.title) document.title = `${page.title} · Fairlead`;
  }, [page]);
  const { Component, error } = loaded.value;
  if (error) return html`<${ProblemNotice} error=${{ message: "This page could not be loaded; it will be tried again." }} />`;
  return Component ? html`<${Component} ...${params} />` : html`<${Waiting} />`;
}

function NoPage() {
  useEffect(() => { document.title = "No such page · Fairlead"; }, []);
  return html`<${Empty} title="There is no page at this address."><a class="link" href="/">Now</a><//>`;
}
