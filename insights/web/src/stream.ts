// What changes, as the server tells it: one stream for all windows of a browser, of which one holds it and tells the others.
import { effect, signal } from "@preact/signals";
import type { StoreState } from "./api";
import { moment } from "./past";
import { is_paused, paused } from "./paused";
import { poll_events } from "./polled";

// Counts up whenever a run has changed: who shows one asks again.
export const changed = signal(0);
export const live = signal(false);
// A proxy holds the stream back: events are asked for.
export const polled = signal(false);
const PATIENCE = 5000;  // ms that a stream may take to begin
// By run, counts up whenever it has new values.
const ticks = signal<ReadonlyMap<string, number>>(new Map());
const refreshes = signal(0);
// Another number: panels of this run ask again.
export const turn_of = (uid: string): number => (ticks.value.get(uid) ?? 0) + refreshes.value;
// Of the stores, those whose state the stream told, as they are now.
export const told_stores = signal<ReadonlyMap<string, StoreState>>(new Map());

// Everything on the screen asks again.
export function refresh(): void {
  if (is_paused()) paused.value = Date.now();
  refreshes.value += 1;
  changed.value += 1;
}

type Told = { type: "changed" | "lost" | "anybody" } | { type: "hello"; polled: boolean } | { type: "tick"; uid: string } | { type: "store"; one: StoreState };

let due = 0;
let missed = false;  // what happened while nothing was followed
function soon(): void {
  if (due) return;
  due = window.setTimeout(() => { due = 0; if (!is_paused()) changed.value += 1; }, 250);
}

function hear(told: Told): void {
  if (document.hidden || is_paused()) return;
  if (told.type === "tick") ticks.value = new Map(ticks.value).set(told.uid, (ticks.value.get(told.uid) ?? 0) + 1);
  if (told.type === "store") told_stores.value = new Map(told_stores.value).set(told.one.store, told.one);
  if (told.type === "hello") { live.value = true; polled.value = told.polled; }
  if (told.type === "lost") live.value = false;
  if (told.type === "hello" && missed) { missed = false; refresh(); } else if (told.type === "hello" || told.type === "changed") soon();
}

const CHANGES = ["run", "silence", "reset"];

// Gives what closes it.
function open_stream(tell: (told: Told) => void): () => void {
  const stream = new EventSource("/api/v1/stream");
  const take = (event: string, data: unknown) => {
    if (CHANGES.includes(event)) tell({ type: "changed" });
    else if (event === "tick") tell({ type: "tick", uid: (data as { uid: string }).uid });
    else if (event === "store") tell({ type: "store", one: data as StoreState });
  };
  let close = () => stream.close();
  const silent = window.setTimeout(() => {
    stream.close();
    close = poll_events(({ event, data }) => take(event, data), () => tell({ type: "hello", polled: true }), () => tell({ type: "lost" }));
  }, PATIENCE);
  stream.addEventListener("hello", () => { clearTimeout(silent); tell({ type: "hello", polled: false }); });
  for (const type of CHANGES) stream.addEventListener(type, () => take(type, null));
  for (const type of ["tick", "store"]) stream.addEventListener(type, (event) => take(type, JSON.parse((event as MessageEvent<string>).data)));
  stream.onerror = () => { clearTimeout(silent); tell({ type: "lost" }); };
  return () => { clearTimeout(silent); close(); };
}

// A browser has six connections for all windows of a server over HTTP/1.1: the window that has the lock holds the stream.
function share(): () => void {
  const channel = new BroadcastChannel("tocsin.stream");
  const stop = new AbortController();
  let release = () => {};
  let holds = false;
  const tell = (told: Told) => { hear(told); channel.postMessage(told); };
  channel.onmessage = (event: MessageEvent<Told>) => {
    if (event.data.type !== "anybody") hear(event.data);
    else if (holds && live.value) channel.postMessage({ type: "hello", polled: polled.value } satisfies Told);
  };
  navigator.locks.request("tocsin.stream", { signal: stop.signal }, () => new Promise<void>((done) => {
    const close = open_stream(tell);
    holds = true;
    release = () => { close(); done(); };
  })).catch(() => undefined);  // left while it waited
  channel.postMessage({ type: "anybody" } satisfies Told);
  return () => { stop.abort(); release(); channel.close(); };
}

// A window that is hidden or paused holds nothing. Without a secure context there are no locks: each window has a stream of its own.
export function follow(): void {
  let leave: (() => void) | null = null;
  const look = () => {
    if (document.hidden || moment.value || paused.value !== null) { missed ||= leave !== null && !moment.value; leave?.(); leave = null; live.value = false; }
    else if (!leave) leave = "locks" in navigator && "BroadcastChannel" in window ? share() : open_stream(hear);
  };
  document.addEventListener("visibilitychange", look);
  effect(look);
}
