// Requests to the public API, and the errors they end with.
import { signal } from "./ui.js";

const PATIENCE = 20_000; // ms

/** What `GET /api/v1/session` says of this browser; null until it is known. */
export const session = signal(null);

/** An answer that is a problem (RFC 9457), or no answer at all: then `status` is 0. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || "The gateway does not answer.");
    this.status = status;
    this.code = body.code || "unreachable";
    this.errors = body.errors || [];
    this.requestId = body.request_id || null;
  }
}

/** Without keys, the namespace that this window shows: of its address, or chosen before. With a key, that of the key. */
const NAMESPACE = "fairlead-namespace";
const given = new URLSearchParams(location.search).get("namespace");
if (given) sessionStorage.setItem(NAMESPACE, given);

export function chooseNamespace(name) {
  sessionStorage.setItem(NAMESPACE, name);
  location.assign("/");
}

/** What every request says besides its body. */
function headersOf() {
  const known = session.peek();
  const chosen = known?.namespaces.length ? known.namespace : sessionStorage.getItem(NAMESPACE);
  return chosen && !known?.csrf_token ? { [NAMESPACE]: chosen } : {};
}

/** `path` with its segments escaped: path`/api/v1/limits/${name}`. */
export function path(texts, ...values) {
  return texts.reduce((made, text, i) => made + encodeURIComponent(values[i - 1]) + text);
}

export function withQuery(address, params) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${address}?${new URLSearchParams(given)}` : address;
}

export const get = (address, options) => request("GET", address, options);
export const post = (address, options) => request("POST", address, options);
export const put = (address, options) => request("PUT", address, options);
export const del = (address, options) => request("DELETE", address, options);

/** The answer as a value. `reason` is recorded in the audit log. Throws a Problem. */
export async function request(method, address, { body, reason, signal: cancelled, within = PATIENCE } = {}) {
  const headers = { accept: "application/json", ...headersOf() };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (reason) headers["x-reason"] = encodeHeader(reason);
  const token = session.peek()?.csrf_token;
  if (method !== "GET" && token) headers["x-csrf-token"] = token;
  const answer = await fetched(address, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: cancelled ? AbortSignal.any([cancelled, AbortSignal.timeout(within)]) : AbortSignal.timeout(within),
  });
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  if (answer.status === 401) await loadSession().catch(() => {});
  throw new Problem(answer.status, found);
}

/** Calls `onMessage` with each message of a stream until it ends. Throws a Problem. */
export async function readStream(address, onMessage, cancelled) {
  const answer = await fetched(address, { headers: headersOf(), signal: cancelled });
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event);
      if (data) onMessage(JSON.parse(data[1]));
    }
  }
}

async function fetched(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {});
  }
}

/** A header is bytes: text beyond ASCII is sent as UTF-8. */
function encodeHeader(text) {
  return String.fromCharCode(...new TextEncoder().encode(text.replace(/\s+/g, " ").trim()));
}

export async function loadSession() {
  session.value = await get("/api/v1/session");
}

export async function logIn(key) {
  session.value = await post("/api/v1/session", { body: { key } });
}

/** Without an answer the session is still open, and the page as it was. */
export async function logOut() {
  await del("/api/v1/session").catch(() => {});
  await loadSession().catch(() => {});
}

/** Whether the caller's key has this scope: actions that it may not take are not shown. */
export function may(scope) {
  return session.value?.scopes.includes(scope) ?? false;
}

/** Some things are shared by all tenants: a tenant may neither see nor change them. */
export function isOperator() {
  return Boolean(session.value) && session.value.tenant === null;
}
