// What the handler emits and reports while it runs, as it comes.
import { get, path, withQuery } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { frame } from "../../lib/live.js";
import { html, useEffect, useSignal } from "../../lib/ui.js";

const MOST = 1_000; // chunks that are shown

export function Output({ task, isOpen }) {
  const chunks = useOutput(task.task_id, isOpen);
  const { progress } = task;
  if (!chunks.length && !(progress && isOpen)) {
    return html`<section class="panel c4"><h2>Output</h2><p class="mut">${isOpen ? "Nothing yet." : "It emitted nothing."}</p></section>`;
  }
  return html`
    <section class="panel c8">
      <div class="hd"><h2>Output</h2><span class="sub">${chunks.length > 0 && plural(chunks.length, "chunk")}</span></div>
      ${progress && isOpen && html`
        <div class="progress">
          <progress max="1" value=${progress.fraction ?? undefined} aria-label="Progress"></progress>
          <span>${progress.fraction !== null && `${Math.round(100 * progress.fraction)} % `}<span class="mut">${progress.message}</span></span>
        </div>`}
      ${chunks.length > 0 && html`<pre class="output" tabindex="0" aria-label="Output">${chunks.map((one) => html`<span key=${one.seq}>${shown(one.chunk)}${"\n"}</span>`)}</pre>`}
    </section>`;
}

const shown = (chunk) => (typeof chunk === "string" ? chunk.replace(/\n$/, "") : JSON.stringify(chunk));

/** All that is kept, and what comes while it runs. */
function useOutput(id, isOpen) {
  const chunks = useSignal([]);
  useEffect(() => {
    let after = chunks.peek().at(-1)?.seq ?? 0; // what came before the end of the task is here already
    let busy = false;
    let over = false;
    const read = async () => {
      if (busy) return;
      busy = true;
      try {
        let more = true;
        while (more) {
          const page = await get(withQuery(path`/api/v1/tasks/${id}/outputs`, { after }));
          if (over) return;
          if (page.outputs.length) chunks.value = [...chunks.peek(), ...page.outputs].slice(-MOST);
          after = page.next_after ?? page.outputs.at(-1)?.seq ?? after;
          more = page.next_after !== null;
        }
      } catch {
        // the page shows the error of its task, and the next message tries again
      }
      busy = false;
    };
    let stop;
    if (isOpen) stop = frame.subscribe(read);
    else read();
    return () => {
      over = true;
      stop?.();
    };
  }, [id, isOpen]);
  return chunks.value;
}
