// Curves that a person has chosen for a job: they are there for its next run too. The server keeps them for whoever has signed in, else this
// browser does.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, tell, type Status } from "./api";

const name_of = (job: string) => `tocsin.curves.${job}`;
const served = signal<Map<string, string[]>>(new Map());  // by job; empty of a job: the browser's hold

function in_browser(job: string): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(name_of(job)) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === "string") : [];
  } catch { return []; }
}
function keep_in_browser(job: string, names: string[]): void {
  try {
    if (names.length > 0) localStorage.setItem(name_of(job), JSON.stringify(names)); else localStorage.removeItem(name_of(job));
  } catch { /* a private window */ }
}

const view_of = (job: string) => `/views/${encodeURIComponent(job)}`;
const has_signed_in = () => ask<Status>("/status").then(({ who }) => ["token", "session", "proxy"].includes(who.by), () => false);
const know = (job: string, names: string[]) => { served.value = new Map(served.value).set(job, names); };

async function load(job: string): Promise<void> {
  const names = await has_signed_in() ? (await ask<{ charts: string[] }>(view_of(job)).catch(() => ({ charts: [] }))).charts : [];
  know(job, names);
}

export const pinned = (job: string): string[] => {
  const names = served.value.get(job) ?? [];
  return names.length > 0 ? names : in_browser(job);
};

// null: it is not known yet.
export function usePinned(job: string | null): string[] | null {
  useEffect(() => { if (job) void load(job); }, [job]);
  if (!job) return [];
  return served.value.has(job) ? pinned(job) : null;
}

export async function pin(job: string | null, names: string[]): Promise<void> {
  if (!job) return;
  const at_server = await has_signed_in() && await tell(view_of(job), { charts: names }, "", "PUT").then(() => true, () => false);
  know(job, at_server ? names : []);
  keep_in_browser(job, at_server ? [] : names);
}
