// What the server says of a run's series, and in words what a chart shows.
import { short, type Line } from "./chart";
import { drawn_words } from "./losses";
import { clock, clock_words } from "./clock";

export interface Name {
  name: string; kind: string; role: string; unit: string | null; direction: string | null; modes: string[];
  workers: number; stored: number; first_step: number; last_step: number; last: number | string | null;
  shape: string | null; collections: string[]; worst: number | null; first_bad_step: number | null;
}
export interface Curve {
  name: string; kind: string; mode: string; worker: string | null; workers: number; attempt: number; superseded: boolean;
  unit: string | null; stored: number; repeats: number; x0: number[]; t0: string | null; dt: (number | null)[]; value?: (number | null)[];
  n?: number[]; first?: (number | null)[]; min?: (number | null)[]; max?: (number | null)[]; mean?: (number | null)[]; bad: number[][];
}
export interface Restart {
  mode: string; step: number; attempt: number; workers: number; again: number; number: number | null; before: number | null;
  world_size: number | null; reason: string | null; exit_code: number | null;
}
export interface Loss { lane: string | null; reason: string; workers: number; frames: number; values: number; first_step: number | null; last_step: number | null }
export interface Curves { width: number; from: number; to: number; rows_from: number | null; series: Curve[]; left_out: number; restarts: Restart[]; refused: number; lost: Loss[] }

const RATE = /(^|[_/.-])(lr|learning_rate)([_/.-]|$)/i;

// Losses, metrics, learning rates, then the time of steps: what is shown when nobody has chosen.
export function usual_names(names: Name[], most: number): string[] {
  const grade = (one: Name) =>
    one.role === "loss" ? 0 : one.name.startsWith("phase/") ? 6 : one.role === "ledger" ? 5 : RATE.test(one.name) ? 2 : one.kind === "clock" ? 3 : one.role === "metric" ? 1 : 4;
  return [...names].sort((a, b) => grade(a) - grade(b)).slice(0, most).map((one) => one.name);
}

export const exactly = (names: string[]) => names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");

// Steps of each mode are counted by themselves: a chart has one mode, those of training come first.
export function charts_of(curves: Curve[], shown: string[]): { name: string; mode: string; curves: Curve[] }[] {
  const out = new Map<string, { name: string; mode: string; curves: Curve[] }>();
  const order = (one: Curve) => (one.mode === "train" ? 0 : shown.length) + shown.indexOf(one.name);
  for (const one of curves.filter((some) => shown.includes(some.name)).sort((a, b) => order(a) - order(b))) {
    const key = `${one.mode} ${one.name}`;
    if (!out.has(key)) out.set(key, { name: one.name, mode: one.mode, curves: [] });
    out.get(key)!.curves.push(one);
  }
  return [...out.values()];
}

export function lines_of(curves: Curve[]): Line[] {
  return curves.map((one) => ({
    label: [one.mode, one.workers > 1 ? `mean of ${one.workers} workers` : "",
      one.superseded ? "replaced by a later attempt" : ""].filter(Boolean).join(", "),
    x: one.x0, mid: one.value ?? one.mean ?? [], low: one.min ?? null, high: one.max ?? null,
    bad: one.bad.map((row): [number, number] => [row[4]!, row[1]! + row[2]! + row[3]!]), faint: one.superseded,
  }));
}

export interface Extreme { x: number; value: number }
export function facts_of(curve: Curve) {
  const mid = curve.value ?? curve.mean ?? [];
  let least: Extreme | null = null;
  let most: Extreme | null = null;
  let last: Extreme | null = null;
  curve.x0.forEach((x, at) => {
    const low = (curve.min ?? mid)[at];
    const high = (curve.max ?? mid)[at];
    if (low != null && (!least || low < least.value)) least = { x, value: low };
    if (high != null && (!most || high > most.value)) most = { x, value: high };
    if (mid[at] != null) last = { x, value: mid[at]! };
  });
  const bad = curve.bad.reduce((sum, row) => sum + row[1]! + row[2]! + row[3]!, 0);
  return { least: least as Extreme | null, most: most as Extreme | null, last: last as Extreme | null, bad };
}

const steps_words = (width: number) => (width === 1 ? "1 point = 1 step" : `1 point = ${width} steps, the band from least to greatest`);

// One sentence per line, for who does not see the chart, and under it for everybody.
export function sentence(curve: Curve, label: string, answer: Curves): string {
  const { least, most, last, bad } = facts_of(curve);
  const unit = curve.unit && curve.unit !== "1" ? ` ${curve.unit}` : "";
  if (!last && bad === 0) return `${curve.name} (${label}): no values in these steps.`;
  const parts = [`${curve.name} (${label})`];
  if (least && most && last)
    parts.push(`least ${short(least.value)}${unit} at step ${least.x}`, `greatest ${short(most.value)}${unit} at step ${most.x}`,
      `last ${short(last.value)}${unit} at step ${last.x}`);
  if (bad > 0) parts.push(`${bad} not finite, first at step ${curve.bad[0]![4]}`);
  return `${parts.join("; ")}. ${drawn_words(curve)}; ${steps_words(answer.width)}.`;
}

export function read_out(curves: Curve[], labels: string[], x: number, width: number): string {
  const parts = curves.flatMap((curve, which) => {
    let at = curve.x0.length - 1;
    while (at >= 0 && curve.x0[at]! > x) at -= 1;
    if (at < 0 || curve.superseded && curve.x0[at] !== x) return [];
    const value = (curve.value ?? curve.mean ?? [])[at];
    const bad = curve.bad.find((row) => row[0] === at);
    const said = [value != null ? short(value) : "", bad ? `${bad[1]! > 0 ? `${bad[1]} NaN` : ""}${bad[2]! > 0 ? ` ${bad[2]} +Inf` : ""}${bad[3]! > 0 ? ` ${bad[3]} −Inf` : ""}`.trim() : ""].filter(Boolean).join(", ");
    const low = curve.min?.[at];
    const band = low != null && value != null && low !== curve.max?.[at] ? ` (${short(low)} to ${short(curve.max![at]!)})` : "";
    const time = curve.t0 && curve.dt[at] != null ? ` · ${clock_words(Date.parse(curve.t0) + curve.dt[at]!)}` : "";
    return [`${labels.length > 1 ? `${labels[which]} ` : ""}${said}${band}${curve.x0[at] === x ? "" : ` of step ${curve.x0[at]}`}${time}`];
  });
  return `step ${x}${width > 1 ? ` to ${x + width - 1}` : ""}: ${parts.join(" · ") || "no value"}`;
}
