// Every page, in the order of the side bar. `key` opens it after `g`; `count` is shown beside its name.
//
// A page is a module with a default component, which gets the parameters of its path. Those without a `title` are
// not in the side bar and belong to the page whose name is `under`. A `detail` is a path of the same page, which shows one
// of its rows beside the list. `scope` and `forOperators`: who may see it.
import { match } from "../lib/router.js";

export const PAGES = [
  { name: "now", title: "Now", path: "/", key: "n", load: () => import("./now.js") },
  { name: "tasks", title: "Tasks", path: "/tasks", key: "t", count: "tasks", load: () => import("./tasks.js") },
  { name: "task", under: "tasks", path: "/tasks/:id", load: () => import("./task.js") },
  { name: "jobs", title: "Jobs", path: "/jobs", detail: "/jobs/:id", key: "j", count: "jobs", load: () => import("./jobs.js") },
  { name: "limits", title: "Limits", path: "/limits", detail: "/limits/:name", key: "l", count: "limits", load: () => import("./limits.js") },
  { name: "workers", title: "Workers", path: "/workers", detail: "/workers/:id", key: "w", count: "workers", forOperators: true, load: () => import("./workers.js") },
  { name: "types", title: "Types", path: "/types", detail: "/types/:name", key: "y", gap: true, load: () => import("./types.js") },
  { name: "dead", title: "Dead letters", path: "/dead-letters", detail: "/dead-letters/:id", key: "d", count: "dead_letters", load: () => import("./dead.js") },
  { name: "crons", title: "Crons", path: "/crons", key: "c", count: "crons", forOperators: true, load: () => import("./crons.js") },
  { name: "audit", title: "Audit", path: "/audit", detail: "/audit/:id", key: "a", gap: true, scope: "admin", forOperators: true, load: () => import("./audit.js") },
  { name: "what-if", title: "What if", path: "/what-if", key: "i", scope: "admin", forOperators: true, load: () => import("./whatif.js") },
];

/** The page at a path, and the parameters in it; null if there is none. */
export function pageAt(path) {
  for (const page of PAGES) {
    const params = match(page.path, path) ?? (page.detail && match(page.detail, path));
    if (params) return { page, params };
  }
  return null;
}
