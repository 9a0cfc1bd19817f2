// Every page, in the order of the side bar. `key` opens it after `g`; `count` is shown beside its name.
//
// A page is a module with a default component, which gets the parameters of its path. Those without a `title` are
// not in the side bar and belong to the page whose name is `under`.
import { match } from "../lib/router.js";

export const PAGES = [
  { name: "now", title: "Now", path: "/", key: "n", load: () => import("./now.js") },
];

/** The page at a path, and the parameters in it; null if there is none. */
export function pageAt(path) {
  for (const page of PAGES) {
    const params = match(page.path, path);
    if (params) return { page, params };
  }
  return null;
}
