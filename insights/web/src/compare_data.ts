// Runs side by side: on which axis, where they part, and in what they differ. No screen.
import type { RunRow } from "./api";
import type { Line } from "./chart";
import type { Curve, Curves } from "./curve_data";
import { joined } from "./resumed";

export type Axis = "step" | "time" | "fraction";
export interface Compared { run: RunRow; answer: Curves | null }

// Of a run's curves the one that is compared: of its newest attempt, of training if it has it.
export function curve_of(answer: Curves | null, mode: string): Curve | null {
  const fits = joined(answer?.series ?? []).filter((one) => !one.superseded);
  return fits.find((one) => one.mode === mode) ?? null;
}

export const modes_of = (all: Compared[]) => [...new Set(all.flatMap((one) => (one.answer?.series ?? []).map((curve) => curve.mode)))]
  .sort((a, b) => (a === "train" ? -1 : b === "train" ? 1 : a.localeCompare(b)));

// Seconds since its first value, or share of its steps; whole numbers, as a chart's axis has them.
export function moved(curve: Curve, axis: Axis): number[] {
  if (axis === "step") return curve.x0;
  if (axis === "fraction") {
    const last = Math.max(1, curve.x0[curve.x0.length - 1] ?? 1);
    return curve.x0.map((x) => Math.round(1000 * x / last));
  }
  const first = curve.dt.find((one) => one !== null) ?? 0;
  return curve.x0.map((_, at) => Math.round(((curve.dt[at] ?? first) - first) / 1000));
}

export const run_words = (run: RunRow) => `${run.job || "run"} ${run.uid.slice(0, 8)}`;

export function lines_of_runs(all: Compared[], mode: string, axis: Axis, colours: number[]): Line[] {
  return all.flatMap(({ run, answer }, place) => {
    const curve = curve_of(answer, mode);
    if (!curve) return [];
    const x = moved(curve, axis);
    // Two values at one second are one place of the chart: the later stays.
    const keep = x.map((one, at) => one !== x[at + 1]);
    const of = <T,>(column: T[] | undefined) => (column ?? []).filter((_, at) => keep[at]);
    return [{ label: run_words(run), x: of(x), mid: of(curve.value ?? curve.mean), low: curve.min ? of(curve.min) : null, high: curve.max ? of(curve.max) : null,
      bad: curve.bad.map((row): [number, number] => [x[row[0]!]!, row[1]! + row[2]! + row[3]!]), faint: false, colour: colours[place]! }];
  });
}

// The first step at which two runs have not the same number; exact where a point is a step.
export function first_apart(a: Curve, b: Curve): number | null {
  const of_b = new Map(b.x0.map((x, at) => [x, at]));
  const bad = (curve: Curve, at: number) => JSON.stringify(curve.bad.find((row) => row[0] === at)?.slice(1, 4) ?? null);
  for (const [at, x] of a.x0.entries()) {
    const other = of_b.get(x);
    if (other === undefined) continue;
    if ((a.value ?? a.mean)?.[at] !== (b.value ?? b.mean)?.[other] || bad(a, at) !== bad(b, other)) return x;
  }
  return null;
}

// What is not the same of all of them: labels, ranks, outcome.
export function differences(runs: RunRow[]): { name: string; values: string[] }[] {
  const facts = runs.map((run): Record<string, string> => ({
    job: run.job ?? "–", outcome: run.outcome ?? run.state, ranks: String(run.world_size), attempt: run.attempt < 1e9 ? String(run.attempt) : "–",
    step: run.step === null ? "–" : String(run.step), issues: String(run.issues.total),
    ...Object.fromEntries(Object.entries(run.labels).map(([name, value]) => [`label ${name}`, value])),
  }));
  const names = [...new Set(facts.flatMap((one) => Object.keys(one)))];
  return names.map((name) => ({ name, values: facts.map((one) => one[name] ?? "–") })).filter((row) => new Set(row.values).size > 1);
}
