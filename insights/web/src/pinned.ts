// Curves that a person has chosen for a job: they are there for its next run too. Kept by this browser.
const name_of = (job: string) => `tocsin.curves.${job}`;

export function pinned(job: string | null): string[] {
  if (!job) return [];
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(name_of(job)) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === "string") : [];
  } catch { return []; }
}

export function pin(job: string | null, names: string[]): void {
  if (!job) return;
  try {
    if (names.length > 0) localStorage.setItem(name_of(job), JSON.stringify(names)); else localStorage.removeItem(name_of(job));
  } catch { /* a private window */ }
}
