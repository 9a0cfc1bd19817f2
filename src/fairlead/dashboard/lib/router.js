// Which page is shown, and with which filters: all of it is in the address.
import { signal } from "./ui.js";

const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const place = signal(here());

addEventListener("popstate", () => {
  place.value = here();
});

/** Shows another page; `replace` leaves no way back to this one, `keep` does not scroll to the top. */
export function go(address, { replace = false, keep = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  place.value = here();
  if (!replace && !keep) scrollTo(0, 0);
}

/** One value of the query, or a default. */
export function queried(name, fallback = "") {
  return place.value.query.get(name) ?? fallback;
}

/** Changes values of the query; an empty one is left out. `replace`: what is typed should not fill the history. */
export function setQuery(values, { replace = false } = {}) {
  const query = new URLSearchParams(place.peek().query);
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null || value === undefined) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString() && `?${query}`;
  if (text === location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", location.pathname + text);
  place.value = here();
}

/** Links to our own pages do not load the page again. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (!link || !plain || event.defaultPrevented || link.target || link.origin !== location.origin) return;
    if (link.hasAttribute("data-whole") || link.pathname === location.pathname && link.hash) return;
    event.preventDefault();
    go(link.pathname + link.search, { keep: staysBeside(link) });
  });
}

/** Whether the list and what is chosen in it are side by side: then the list stays where it is. */
function staysBeside(link) {
  const first = (path) => path.split("/")[1];
  const isBeside = link.closest(".master") && matchMedia("(min-width: 1181px)").matches;
  return Boolean(isBeside) && first(link.pathname) === first(location.pathname);
}

/** The parameters of a path such as `/tasks/:id`; null if the pattern does not fit. */
export function match(pattern, path) {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const params = {};
  for (const [i, part] of wanted.entries()) {
    if (part.startsWith(":")) params[part.slice(1)] = decoded(given[i]);
    else if (part !== given[i]) return null;
  }
  return params;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
