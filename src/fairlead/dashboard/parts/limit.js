// One limit: who holds it, who is next, and what may be changed.
import { del, isOperator, may, path, put, session } from "../lib/api.js";
import { ms, plural, shortId, since, span, time, workerName } from "../lib/format.js";
import { clock, connection, useResource } from "../lib/live.js";
import { useKeys } from "../lib/keys.js";
import { go } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Chart } from "./chart.js";
import { Confirm } from "./confirm.js";
import { limitAddress, sizeBody, SizeFields } from "./limitform.js";
import { Ask, Detail, Section } from "./master.js";
import { Priority, Range } from "./marks.js";
import { Shown } from "./notice.js";
import { Table } from "./table.js";
import { TryLimit } from "./trylimit.js";

const WINDOWS = [120, 600, 3600, 14_400]; // s that are drawn: the first that shows the last start

/** As the store distinguishes it from those of other tenants. */
export const fullName = (limit) => (limit.tenant && session.peek()?.tenant === null ? `${limit.tenant}/${limit.name}` : limit.name);

export function LimitDetail({ name }) {
  const found = useResource(limitAddress(name));
  if (!found.data) return html`<${Detail} title=${name} back="/limits" backTitle="Limits"><${Shown} resource=${found} rows=${4}>${() => null}<//><//>`;
  return html`<${Limit} limit=${found.data} name=${name} />`;
}

function Limit({ limit, name }) {
  const asked = useSignal(null);
  const close = () => { asked.value = null; };
  const forecast = useResource(`/api/v1/forecast?seconds=86400&limit=${encodeURIComponent(name)}`);
  const ahead = forecast.data?.limits?.[0];
  const changes = may("admin") && (isOperator() || limit.tenant);
  useKeys({ z: [limit.paused ? "resume this limit" : "pause this limit", () => { asked.value = "pause"; }] }, changes);
  const actions = changes && html`
    <${Ask} asked=${asked} name="change">Change…<//>
    <${Ask} asked=${asked} name="pause" hint="z">${limit.paused ? "Resume…" : "Pause…"}<//>
    <${Ask} asked=${asked} name="delete" danger>Delete…<//>`;
  return html`
    <${Detail} title=${limit.name} sub=${sentence(limit)} back="/limits" backTitle="Limits" actions=${actions}>
      ${asked.value === "pause" && html`<${Pause} limit=${limit} name=${name} onClose=${close} />`}
      ${asked.value === "change" && html`<${Change} limit=${limit} name=${name} onClose=${close} />`}
      ${asked.value === "delete" && html`<${Delete} limit=${limit} name=${name} onClose=${close} />`}
      ${ahead && forecast.data.at && html`
        <div class="solo"><${Chart} limits=${[ahead]} seconds=${windowOf(ahead)} now=${clock.value} stale=${connection.value.state === "stale"}
          label="${limit.name}, now and next" /></div>`}
      <${Section} title="Holds it" sub=${limit.has_more_slots ? "100 of them" : null}><${Holders} limit=${limit} name=${name} ahead=${ahead} mayFree=${changes} /><//>
      <${Section} title="Waits for it" sub=${limit.waiting > 0 ? `${limit.waiting} in the order they will go` : null}><${Waiters} limit=${limit} ahead=${ahead} /><//>
    <//>`;
}

function windowOf(ahead) {
  const last = (ms(ahead.last_start_p50 ?? ahead.tracks[0]?.runs.at(-1)?.end_p50) - clock.value) / 1000;
  return WINDOWS.find((seconds) => last < 0.9 * seconds) ?? WINDOWS.at(-1);
}

function sentence(limit) {
  const size = limit.kind === "rate" ? `${limit.rate}, at most ${limit.burst} at once` : plural(limit.limit, "slot");
  const whose = limit.shared ? "shared with all tenants" : limit.tenant ? `of tenant ${limit.tenant}` : "for all work that names it";
  const state = limit.paused ? " Paused: nothing more starts." : limit.held_back ? " Units are held back for a task that needs several." : "";
  return `${size}, ${whose}. ${limit.active} held, ${limit.waiting} ${limit.waiting === 1 ? "waits" : "wait"}.${state}`;
}

function Holders({ limit, name, ahead, mayFree }) {
  const freed = useSignal(null);
  if (!limit.slots.length) return html`<p class="sub">${limit.active > 0 ? "Others hold it, whom this key may not see." : "Nobody holds it now."}</p>`;
  // one that has started since the forecast was made is expected in it
  const runs = new Map((ahead?.tracks ?? []).flatMap((track) => track.runs).map((run) => [run.task_id ?? run.lease_id, run]));
  const run = (slot) => runs.get(slot.task_id ?? slot.slot_id);
  const columns = [
    { title: "Who", cell: (slot) => html`<${Who} slot=${slot} run=${run(slot)} />` },
    { title: "Worker", hide: true, cell: (slot) => html`<span class="mut">${slot.worker_id ? workerName(slot.worker_id) : "no name"}</span>` },
    { title: "Since", num: true, cell: (slot) => (run(slot)?.state === "running" ? span(since(run(slot).start_p50, clock.value)) : html`<span class="dim">just now</span>`) },
    { title: "Units", num: true, hide: true, cell: (slot) => slot.units },
    { title: "Free", num: true, cell: (slot) => html`<${FreeAt} slot=${slot} run=${run(slot)} />` },
  ];
  const acts = (slot) => (slot.task_id ? may("cancel") : mayFree);
  if (limit.slots.some(acts)) columns.push({ title: html`<span class="vh">Act</span>`, num: true, cell: (slot) => acts(slot) && html`
    <button class="btn sm danger" aria-label="${slot.task_id ? "Cancel task" : "Free lease"} ${shortId(slot.slot_id)}"
      onClick=${() => { freed.value = slot; }}>${slot.task_id ? "Cancel…" : "Free…"}</button>` });
  return html`
    <${Table} label="Holders" columns=${columns} rows=${limit.slots} keyOf=${(slot) => slot.slot_id} />
    ${freed.value && html`<${Free} slot=${freed.value} name=${name} onClose=${() => { freed.value = null; }} />`}`;
}

function Who({ slot, run }) {
  if (!slot.task_id) return html`<span class="p n">lease <span class="mono">${shortId(slot.slot_id)}</span></span>`;
  return html`<a class="link p ${run?.priority?.[0] ?? "n"}" href=${`/tasks/${slot.task_id}`}>${run?.user_id ? `${run.user_id} · ` : ""}${run?.task_type ?? shortId(slot.task_id)}</a>`;
}

function FreeAt({ slot, run }) {
  if (!run) return slot.expires_at ? html`<span class="nw">by ${time(slot.expires_at)}</span>` : "–";
  return html`<span class="nw">${time(run.end_p50)} <span class="dim hide-s">p90 ${time(run.end_p90)}</span></span>`;
}

function Waiters({ limit, ahead }) {
  if (limit.waiting === 0) return html`<p class="sub">Nobody waits for it.</p>`;
  const next = (ahead?.tracks ?? []).flatMap((track) => track.runs).filter((run) => run.state === "expected");
  const rows = [...new Map(next.map((run) => [run.task_id ?? run.start_p50, run])).values()].sort((a, b) => ms(a.start_p50) - ms(b.start_p50));
  if (!rows.length) return html`<p class="sub">${limit.paused ? "No estimate can be given while it is paused." : "When they start is not known yet."}</p>`;
  const left = (moment) => (ms(moment) - clock.value) / 1000;
  const columns = [
    { title: "Who", cell: (run) => html`<span class="dim place">${rows.indexOf(run) + 1}</span>${run.foreign ? html`<span class="mut">another tenant</span>` : html`
      <a class="link p ${run.priority?.[0] ?? "n"}" href=${`/tasks/${run.task_id}`}>${run.user_id ? `${run.user_id} · ` : ""}${run.task_type}</a>`}` },
    { title: "Priority", hide: true, cell: (run) => html`<${Priority} of=${run.priority} />` },
    { title: "Starts in", num: true, cell: (run) => (left(run.start_p90) <= 0 ? html`<span class="mut">due</span>` : html`<${Range} p50=${left(run.start_p50)} p90=${left(run.start_p90)} />`) },
  ];
  const more = limit.waiting - rows.length;
  return html`
    <${Table} label="Tasks that wait" columns=${columns} rows=${rows} keyOf=${(run) => run.task_id ?? run.start_p50} />
    ${more > 0 && html`<p class="sub below">and ${more.toLocaleString("en")} more${ahead?.last_start_p50 ? `, the last at about ${time(ahead.last_start_p50)}` : ""}.</p>`}`;
}

// Acts

function Pause({ limit, name, onClose }) {
  const paused = !limit.paused;
  const act = (reason) => put(limitAddress(name), { body: { paused }, reason });
  const verb = `${paused ? "Pause" : "Resume"} ${limit.name}`;
  return html`
    <${Confirm} title="${verb}?" verb=${verb} keep=${paused ? "Keep it going" : "Leave it paused"} asksReason act=${act} onClose=${onClose}>
      <p>${paused
        ? `${limit.waiting === 1 ? "1 task waits" : `${limit.waiting} tasks wait`} until you resume it, and no estimate can be given meanwhile. What runs now goes on to its end.`
        : `${limit.waiting === 1 ? "1 task that waits" : `${limit.waiting} tasks that wait`} may start again, in their order.`}</p>
    <//>`;
}

function Change({ limit, name, onClose }) {
  const size = useSignal({ kind: limit.kind, limit: String(limit.limit), rate: limit.rate ?? "", burst: limit.burst ? String(limit.burst) : "" });
  const act = (reason) => put(limitAddress(name), { body: sizeBody(size.value), reason });
  return html`
    <${Confirm} title="Change ${limit.name}" verb="Change ${limit.name}" asksReason act=${act} onClose=${onClose}>
      <p>It takes effect at once. If more is held than it allows, nothing is stopped: no more starts until enough is free.</p>
      <${SizeFields} size=${size} fixedKind />
      ${isOperator() && html`<${TryLimit} name=${name} size=${size} />`}
    <//>`;
}

function Delete({ limit, name, onClose }) {
  const act = async (reason) => {
    await del(limitAddress(name), { reason });
    go("/limits");
  };
  return html`
    <${Confirm} title="Delete ${limit.name}?" verb="Delete ${limit.name}" danger asksReason act=${act} onClose=${onClose}>
      <p>Tasks that name it are refused afterwards. It is not deleted while anything needs it.</p>
    <//>`;
}

function Free({ slot, name, onClose }) {
  const id = shortId(slot.slot_id);
  if (slot.task_id) {
    return html`
      <${Confirm} title="Cancel task ${id}?" verb="Cancel the task" keep="Let it run" danger onClose=${onClose}
        act=${(reason) => del(path`/api/v1/tasks/${slot.task_id}`, { reason })}>
        <p>Its worker stops it, and its ${plural(slot.units, "unit")} are free then. This cannot be undone.</p>
      <//>`;
  }
  const act = (reason) => del(limitAddress(name, path`/leases/${slot.slot_id}`, { force: "true" }), { reason });
  return html`
    <${Confirm} title="Free lease ${id}?" verb="Free ${plural(slot.units, "unit")}" danger asksReason act=${act} onClose=${onClose}>
      <p>What it protects may still run: make sure that it has ended. Somebody else gets the units at once, and the
        holder learns that its lease is over.</p>
    <//>`;
}
