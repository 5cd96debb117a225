// A run has one colour wherever it stands beside others, in whatever order. The address of a comparison says which, so a link shows the same
// everywhere; without it the browser remembers, else the run's uid decides.
const KEPT = "tocsin.run_colours";
const MOST_KEPT = 500;
const COLOURS = 8;  // of colours.ts; places behind them have the same ones, dashed
const PLACES = 4 * COLOURS;

function kept(): [string, number][] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is [string, number] => Array.isArray(one) && typeof one[0] === "string" && Number.isInteger(one[1]) && one[1] >= 0 && one[1] < COLOURS) : [];
  } catch { return []; }
}
function keep(all: [string, number][]): void {
  try { localStorage.setItem(KEPT, JSON.stringify(all.slice(-MOST_KEPT))); } catch { /* a private window */ }
}

// "3,0": a place for each of so many runs; null: the address says nothing that fits.
function told_by(address: string, count: number): number[] | null {
  const told = address.split(",").map((one) => (/^\d{1,2}$/.test(one) ? Number(one) : PLACES));
  return told.length === count && told.every((one) => one < PLACES) ? told : null;
}

// The place in the table of colours of each run. New runs get colours that no other run here has.
export function colours_of_runs(uids: string[], address: string): number[] {
  const known = new Map(kept());
  const told = told_by(address, uids.length);
  if (told) {
    uids.forEach((uid, at) => known.set(uid, told[at]! % COLOURS));
    keep([...known]);
    return told;
  }
  const used = new Set(uids.flatMap((uid) => (known.has(uid) ? [known.get(uid)!] : [])));
  for (const uid of uids.filter((one) => !known.has(one)).sort()) {
    const own = [...uid].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 9973, 7) % COLOURS;
    const free = Array.from({ length: COLOURS }, (_, at) => (own + at) % COLOURS).find((one) => !used.has(one)) ?? own;
    known.set(uid, free);
    used.add(free);
  }
  keep([...known]);
  const seen = new Map<number, number>();  // runs that met elsewhere may share a colour: their lines are dashed
  return uids.map((uid) => {
    const base = known.get(uid)!;
    const before = seen.get(base) ?? 0;
    seen.set(base, before + 1);
    return (base + before * COLOURS) % PLACES;
  });
}
