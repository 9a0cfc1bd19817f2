// Times, spans and numbers as people read them.

/** `0.4 s`, `38 s`, `2:57`, `1 h 05`, `3 d 4 h`. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  const s = Math.max(0, seconds);
  if (s < 0.95) return s < 0.05 ? "0 s" : `${s.toFixed(1)} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
  const minutes = Math.round(s / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)}`;
  const hours = Math.round(s / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const two = (number) => String(number).padStart(2, "0");

export const ms = (moment) => (moment === null || moment === undefined ? null : typeof moment === "number" ? moment : Date.parse(moment));

/** `14:32:10`; on another day with the day. Of a moment of the API, or of ms. */
export function time(moment, { seconds = true } = {}) {
  if (moment === null || moment === undefined) return "–";
  const date = new Date(moment);
  const shown = `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ""}`;
  return date.toDateString() === new Date().toDateString() ? shown : `${day(date)} ${shown}`;
}

/** Of a moment ahead, as exact as it matters. */
export const soon = (moment, now) => time(moment, { seconds: ms(moment) - now < 10 * 60_000 });

const day = (date) => date.toLocaleDateString("en", { day: "numeric", month: "short" });

/** Whole seconds since a moment. */
export const since = (moment, now) => Math.max(0, (now - Date.parse(moment)) / 1000);

export const count = (number) => (number === null || number === undefined ? "–" : number.toLocaleString("en"));

export const share = (part) => (part === null || part === undefined ? "–" : `${Math.round(100 * part)} %`);

/** `1 task`, `3 tasks`. */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export const bytes = (number) =>
  number < 1024 ? `${number} bytes` : number < 1 << 20 ? `${(number / 1024).toFixed(1)} KiB` : `${(number / (1 << 20)).toFixed(1)} MiB`;

/** `01a1df41…91f3c0`. */
export const shortId = (id) => (id && id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id ?? "–");

/** `gpu-1` of `gpu-1-01a1f574-...`: of a worker with a name that is what people know. */
export const workerName = (id) => id && (id.replace(/-?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "") || shortId(id));

/** The class that gives a bar the hue of a priority. */
export const hue = (priority) => ({ high: "h", medium: "m", low: "l" })[priority] ?? "n";
