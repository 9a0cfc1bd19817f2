// One task: why it waits or what became of it, its life, and what was said about it.
import { path, withQuery } from "../lib/api.js";
import { shortId } from "../lib/format.js";
import { useResource } from "../lib/live.js";
import { html, useEffect } from "../lib/ui.js";
import { withFilters } from "../parts/master.js";
import { Shown } from "../parts/notice.js";
import { Actions } from "./task/actions.js";
import { Attempts } from "./task/attempts.js";
import { Expected } from "./task/expected.js";
import { TaskFacts } from "./task/facts.js";
import { Hero } from "./task/hero.js";
import { Life } from "./task/life.js";
import { Output } from "./task/output.js";
import { Content } from "./task/content.js";

export const ENDED = ["completed", "failed", "cancelled", "dead_letter"];

export default function TaskPage({ id }) {
  const found = useResource(path`/api/v1/tasks/${id}`);
  const isOpen = found.data && !ENDED.includes(found.data.status);
  const explained = useResource(found.data ? path`/api/v1/tasks/${id}/explain` : null);
  const limit = Object.keys(found.data?.limits ?? {})[0];
  const ahead = useResource(isOpen && limit ? withQuery("/api/v1/forecast", { limits: limit, follow: id, seconds: 3600 }) : null, { every: 900 });
  const history = useResource(found.data ? path`/api/v1/tasks/${id}/history` : null, { every: 1_900 });
  const letter = useResource(["failed", "dead_letter"].includes(found.data?.status) ? path`/api/v1/dlq/${id}` : null, { every: 9_900 });
  useEffect(() => {
    if (found.data) document.title = `${titleOf(found.data)} · Fairlead`;
  }, [found.data?.task_type, found.data?.user_id]);
  return html`<${Shown} resource=${found}>${(task) => {
    const step = ahead.data?.follow?.steps[0] ?? null;
    const events = history.data?.events ?? null;
    return html`
      <p class="crumb"><a href=${withFilters("/tasks")}>Tasks</a> / <a href=${withQuery("/tasks", { task_type: task.task_type })}>${task.task_type}</a> / <span class="mono" title=${task.task_id}>${shortId(task.task_id)}</span></p>
      <${Actions} task=${task} title=${titleOf(task)} />
      <section class="panel" aria-label="Its life">
        <${Hero} task=${task} explained=${explained.data} why=${letter.data?.why} step=${step} />
        <${Life} task=${task} events=${events} step=${step} />
      </section>
      <div class="cols">
        <${Expected} key=${task.task_id} task=${task} />
        <${TaskFacts} task=${task} explained=${explained.data} />
        <${Attempts} task=${task} attempts=${history.data?.attempts} isOpen=${isOpen} />
        <${Content} title="Parameters" value=${task.parameters} />
        ${task.status === "completed" && html`<${Content} title="Result" value=${task.result} />`}
        <${Output} key=${`o${task.task_id}`} task=${task} isOpen=${isOpen} />
      </div>`;
  }}<//>`;
}

const titleOf = (task) => (task.user_id ? `${task.task_type} for ${task.user_id}` : task.task_type);

