// What went wrong with the GPUs of a run's nodes, as marks on charts: by step, and by the clock.
import { clock_words } from "./clock";
import type { Mark } from "./marks";

export interface HardwareRow {
  kind: "xid" | "memory" | "throttled" | "lost"; time: string; until: string; step: number | null; node: string; gpu: number | null;
  device: string; count: number; xid: number | null; reason: string | null; text: string;
}
export interface Hardware { items: HardwareRow[]; left_out: number }

const MOST_NAMED = 3;
const NEAR = 1000;  // ms: what lies so close together is one mark
const GRADES = ["xid", "lost", "memory", "throttled"];

// The worst first; many at one place are told by three of them.
function words_of(rows: HardwareRow[]): string {
  const all = [...new Set([...rows].sort((a, b) => GRADES.indexOf(a.kind) - GRADES.indexOf(b.kind)).map((one) => one.text))];
  const more = all.length - MOST_NAMED;
  return all.slice(0, MOST_NAMED).join("; ") + (more > 0 ? `; ${more} more` : "");
}

const page_of = (uid: string, row: HardwareRow) => `/runs/${uid}/nodes?node=${encodeURIComponent(row.node)}`;

// One mark for each step.
export function hardware_marks(rows: HardwareRow[], uid: string): Mark[] {
  const steps = new Map<number, HardwareRow[]>();
  for (const one of rows) if (one.step !== null) steps.set(one.step, [...(steps.get(one.step) ?? []), one]);
  return [...steps].map(([step, mine]) => ({ x: step, kind: "hardware", text: `step ${step}: ${words_of(mine)}`, to: page_of(uid, mine[0]!) }));
}

// Of what was told from `from` to `to`, in milliseconds: what lies within a second is one mark.
export function hardware_times(rows: HardwareRow[], uid: string, from: number, to: number): Mark[] {
  const places: { x: number; mine: HardwareRow[] }[] = [];
  for (const one of rows) {
    const x = Date.parse(one.time);
    if (!(x >= from && x <= to)) continue;
    const last = places[places.length - 1];
    if (last && x - last.x < NEAR) last.mine.push(one); else places.push({ x, mine: [one] });
  }
  return places.map(({ x, mine }) => ({ x, kind: "hardware", text: `${clock_words(x)}: ${words_of(mine)}`, to: page_of(uid, mine[0]!) }));
}
