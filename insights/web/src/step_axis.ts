// By what charts over steps are drawn: a chart keeps counting in steps, only where a step lies differs. No screen.
import type uPlot from "uplot";
import type { Line } from "./chart";
import { fine_clock } from "./clock";
import { read_out, type Curve, type Curves, type Name, type Restart } from "./curve_data";
import { moment_words, zone } from "./look";
import type { Mark } from "./marks";

export const X_NAMES = ["step", "time", "relative", "epoch"] as const;
export type XName = (typeof X_NAMES)[number];
export const X_WORDS: Record<XName, string> = { step: "step", time: "time", relative: "time since the start", epoch: "epoch" };
const EPOCH = "epoch";  // the name of the scalar

// Of each x why it cannot be drawn, or null.
export function missing_of(items: Name[], started: number | null): Record<XName, string | null> {
  const clock = items.some((one) => one.kind === "clock") ? null : "no step was timed";
  return { step: null, time: clock, relative: clock ?? (started === null ? "the start is not known" : null),
    epoch: items.some((one) => one.name === EPOCH) ? null : "no epoch was logged" };
}

// Curves that tell where steps lie, beside those that are drawn.
export const names_for = (x: XName, items: Name[]): string[] =>
  x === "step" ? [] : items.filter((one) => (x === "epoch" ? one.name === EPOCH : one.kind === "clock")).map((one) => one.name);

// Steps and where they lie, both rising. Beyond the first and the last it goes on at so much for a step.
interface Knots { x: number[]; y: number[]; before: number; after: number }

const of_pairs = (pairs: [number, number][], before: number, after: number): Knots => ({ x: pairs.map((one) => one[0]), y: pairs.map((one) => one[1]), before, after });

function along(from: number[], to: number[], value: number, before: number, after: number): number {
  const last = from.length - 1;
  if (value <= from[0]!) return to[0]! + (value - from[0]!) * before;
  if (value >= from[last]!) return to[last]! + (value - from[last]!) * after;
  let low = 0;
  for (let high = last; high - low > 1;) { const middle = (low + high) >> 1; if (from[middle]! <= value) low = middle; else high = middle; }
  return to[low]! + (to[low + 1]! - to[low]!) * (value - from[low]!) / (from[low + 1]! - from[low]!);
}

// Of pairs in order of their steps those that rise in both.
function rising(pairs: [number, number][]): [number, number][] {
  const out: [number, number][] = [];
  for (const one of pairs) { const last = out[out.length - 1]; if (!last || (one[0] > last[0] && one[1] > last[1])) out.push(one); }
  return out;
}

const time_at = (curve: Curve, at: number): number | null => (curve.t0 && curve.dt[at] != null ? Date.parse(curve.t0) + curve.dt[at]! : null);

// When steps of a mode ended, by the clock of the attempts that hold them.
function time_knots(curves: Curve[], restarts: Restart[]): Knots | null {
  const held = curves.filter((one) => !one.superseded);
  const clocks = held.filter((one) => one.kind === "clock");
  const known = (clocks.length > 0 ? clocks : held).flatMap((one) => one.x0.flatMap((x, at): [number, number][] => { const time = time_at(one, at); return time === null ? [] : [[x, time]]; }));
  const pairs = rising(known.sort((a, b) => a[0] - b[0] || a[1] - b[1]));
  if (pairs.length === 0) return null;
  const slopes = pairs.slice(1).map((one, at) => (one[1] - pairs[at]![1]) / (one[0] - pairs[at]![0])).sort((a, b) => a - b);
  const usual = slopes[slopes.length >> 1] ?? 1000;
  // Nothing ran between two attempts: the last step of the one and the first of the other are where their own steps lead.
  for (const { step } of restarts) {
    const next = pairs.findIndex((one) => one[0] >= step);
    if (next < 1) continue;
    const [a, b] = [pairs[next - 1]!, pairs[next]!];
    const ends: [number, number][] = [[step - 1, a[1] + (step - 1 - a[0]) * usual], [step, b[1] - (b[0] - step) * usual]];
    if (ends[0]![1] < ends[1]![1]) pairs.splice(next, 0, ...ends.filter((one) => one[0] > a[0] && one[0] < b[0]));
  }
  return of_pairs(pairs, usual, usual);
}

// What a point of the scalar says: the value of its first step.
const epoch_of = (curve: Curve, at: number) => (curve.value ?? curve.first ?? curve.mean ?? [])[at] ?? null;
const epochs_of = (curves: Curve[], mode: string) => curves.filter((one) => one.name === EPOCH && one.mode === mode && !one.superseded)
  .flatMap((one) => one.x0.flatMap((x, at): [number, number][] => { const value = epoch_of(one, at); return value === null ? [] : [[x, value]]; })).sort((a, b) => a[0] - b[0]);

// Where each epoch begins; the steps between lie evenly. The newest is as long as the one before, or longer if its steps so far are more.
function epoch_knots(logged: [number, number][], last: number): Knots | null {
  const pairs = rising(logged);
  if (pairs.length === 0) return null;
  const slope = (at: number) => (pairs[at]![1] - pairs[at - 1]![1]) / (pairs[at]![0] - pairs[at - 1]![0]);
  const [x, y] = pairs[pairs.length - 1]!;
  const most = logged.every((one) => Number.isInteger(one[1])) ? 1 / (Math.max(last, x) + 1 - x) : Infinity;
  const after = Math.min(pairs.length > 1 ? slope(pairs.length - 1) : most === Infinity ? 1 : most, most);
  return { ...of_pairs(pairs, pairs.length > 1 ? slope(1) : y > 0 && x > 0 ? y / x : after, after) };
}

const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200].map((one) => one * 1000)];
const DAY = 86_400_000;
const two = (value: number) => String(value).padStart(2, "0");

// "2.5 s", "3:05", "1:03:05"
export function since_words(millis: number, digits: number): string {
  if (Math.abs(millis) < 60_000) return `${(millis / 1000).toFixed(digits)} s`;
  const all = Math.floor(Math.abs(millis) / 1000);
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
  return `${millis < 0 ? "−" : ""}${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(all % 60)}`;
}

// The line with nothing before a step: not half a step before it, nor where other lines have something since its last value.
function broken_at(line: Line, step: number, others: number[]): Line {
  const at = line.x.findIndex((one) => one >= step);
  if (at < 1) return line;
  const places = [...new Set([step - 0.5, ...others])].filter((one) => one > line.x[at - 1]! && one < line.x[at]!).sort((a, b) => a - b);
  const put = <T,>(column: T[], some: T[]): T[] => [...column.slice(0, at), ...some, ...column.slice(at)];
  const none = places.map(() => null);
  return { ...line, x: put(line.x, places), mid: put(line.mid, none), low: line.low && put(line.low, none), high: line.high && put(line.high, none) };
}

export class StepAxis {
  private nudges = 0;
  constructor(readonly x: Exclude<XName, "step">, private readonly knots: Knots, private readonly start: number, private readonly epochs: [number, number][], private readonly breaks: number[]) {}

  // Where a step lies: milliseconds, or epochs. A number between two steps lies between them.
  place(step: number): number { const { x, y, before, after } = this.knots; return along(x, y, step, before, after) - this.start; }
  step(place: number): number { const { x, y, before, after } = this.knots; return along(y, x, place + this.start, 1 / before, 1 / after); }
  // So little that nobody sees it: the drawing asks anew where the ends of what is shown lie.
  nudge(): number { this.nudges += 1; return this.nudges % 2 * 1e-7; }

  // Where the ticks are, in steps.
  ticks(min: number, max: number, most: number): number[] {
    const [low, high] = [this.place(min), this.place(max)];
    const stride = this.stride((high - low) / Math.max(1, most));
    const out: number[] = [];
    for (let at = Math.ceil(low / stride - 1e-9); at * stride <= high + stride * 1e-9 && out.length <= most + 1; at += 1) out.push(this.step(at * stride));
    return out;
  }
  private stride(least: number): number {
    const nice = () => { const size = 10 ** Math.floor(Math.log10(least || 1)); return size * ([1, 2, 5].find((one) => one * size >= least) ?? 10); };
    if (this.x === "epoch") return nice();
    return STRIDES.find((one) => one >= least) ?? Math.ceil(least / DAY) * DAY;
  }
  tick_words(ticks: number[]): string[] {
    const places = ticks.map((one) => this.place(one));
    const apart = places.length > 1 ? (places[places.length - 1]! - places[0]!) / (places.length - 1) : 1000;
    if (this.x === "epoch") return places.map((one) => String(Number(one.toFixed(Math.max(0, -Math.floor(Math.log10(apart) + 1e-9))))));
    const digits = apart < 999 ? (apart < 99 ? 3 : 1) : 0;
    return places.map(Math.round).map((one) => (this.x === "relative" ? since_words(one, digits) :
      apart >= DAY / 2 ? moment_words(new Date(one).toISOString(), zone.value).slice(5, 16) : fine_clock(one, digits > 0 ? 1 : Infinity)));
  }

  // Of a step, in words; "" if nothing is known. An epoch is the newest that was logged at or before it.
  words(step: number): string {
    if (this.x !== "epoch") return this.x === "relative" ? since_words(this.place(step), 3) : fine_clock(Math.round(this.place(step)), 1);
    const found = [...this.epochs].reverse().find((one) => one[0] <= step);
    return found ? String(Number(found[1].toPrecision(6))) : "";
  }

  // Of a point of a curve.
  words_of(curve: Curve, at: number): string { return this.words(this.replaced(curve)[at]!); }

  // What a later attempt did again lies at the time when it was: in steps, between the two that it fell between.
  replaced(curve: Curve): number[] {
    if (this.x === "epoch" || !curve.superseded) return curve.x0;
    return curve.x0.map((x, at) => { const time = time_at(curve, at); return time === null ? x : this.step(time - this.start); });
  }
  // No line goes on from one attempt to the next: between them nothing ran.
  lines(lines: Line[], curves: Curve[]): Line[] {
    const replaced = curves.filter((one) => one.superseded).flatMap((one) => this.replaced(one));
    return lines.map((line, which) => {
      const x = this.replaced(curves[which]!);
      if (x === line.x) return this.breaks.reduce((out, step) => broken_at(out, step, replaced), line);
      const moved = new Map(line.x.map((one, at) => [one, x[at]!]));
      return { ...line, x, bad: line.bad.map(([one, count]): [number, number] => [moved.get(one) ?? one, count]) };
    });
  }
  // An alarm about steps that a later attempt did again is where it was raised.
  marks(marks: Mark[], restarts: Restart[], mode: string): Mark[] {
    if (this.x === "epoch") return marks;
    const begun = restarts.filter((one) => one.mode === mode).sort((a, b) => b.step - a.step);
    return marks.map((mark) => {
      const holder = begun.find((one) => one.step <= mark.x);
      return mark.when === undefined || !holder || holder.attempt === mark.attempt ? mark : { ...mark, x: this.step(mark.when - this.start) };
    });
  }
  // What is read at a place of the chart.
  read(curves: Curve[], labels: string[], x: number, width: number): string {
    const said = (step: number) => { const words = this.words(step); return words && this.x !== "time" ? ` · ${this.x === "epoch" ? `epoch ${words}` : `${words} after the start`}` : ""; };
    if (Number.isInteger(x)) return read_out(curves, labels, x, width) + said(x);
    const which = curves.findIndex((one) => one.superseded && this.replaced(one).includes(x));
    if (which < 0) return `between steps ${Math.floor(x)} and ${Math.floor(x) + 1}${said(x)}`;
    const curve = curves[which]!;
    return read_out([curve], [labels[which]!, ""], curve.x0[this.replaced(curve).indexOf(x)]!, width) + said(x);
  }
}

// null: by steps, because nothing tells where the steps of this mode lie. `whole`: epochs of all steps; `started`: milliseconds.
export function step_axis(x: XName, mode: string, answer: Curves | null, whole: Curves | null, started: number | null): StepAxis | null {
  if (x === "step" || !answer) return null;
  const mine = answer.series.filter((one) => one.mode === mode);
  if (x !== "epoch") {
    const restarts = answer.restarts.filter((one) => one.mode === mode);
    const knots = time_knots(mine, restarts);
    return knots && new StepAxis(x, knots, x === "relative" ? started ?? knots.y[0]! : 0, [], restarts.map((one) => one.step));
  }
  const logged = [...epochs_of(whole?.series ?? [], mode).filter((one) => one[0] < answer.from || one[0] >= answer.to), ...epochs_of(mine, mode)].sort((a, b) => a[0] - b[0]);
  const knots = epoch_knots(logged, Math.max(...mine.map((one) => (one.x0[one.x0.length - 1] ?? 0) + answer.width - 1)));
  return knots && new StepAxis(x, knots, 0, logged, []);
}

// As the library of the charts has it.
export const scale_of = (axis?: () => StepAxis): Partial<uPlot.Scale> => (axis ? { distr: 100, fwd: (x) => axis().place(x), bwd: (at) => axis().step(at) } : {});
export const ticks_of = (axis: () => StepAxis): uPlot.Axis => ({ filter: (_, all) => all,
  splits: (plot, _, min, max) => axis().ticks(min, max, plot.bbox.width / devicePixelRatio / 90), values: (_, all) => axis().tick_words(all) });
