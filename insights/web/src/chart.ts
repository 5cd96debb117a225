// Lines over steps, drawn by uPlot. Nobody else knows that library.
import { beside_arrows } from "./arrows";
import { BAND, draw_band } from "./attempt_band";
import type { Stretch } from "./attempts";
import { clock, TIME_STRIDES } from "./clock";
import { colour_of, dashes_of } from "./colours";
import { is_dark } from "./look";
import { mark_colours, MarkPlaces, MARK_SIGNS, type Mark } from "./marks";
import { share_cursor, type CursorPlace } from "./shared_cursor";
import { scale_of, ticks_of, type StepAxis } from "./step_axis";
import { follow_fingers } from "./touch";
import uPlot from "uplot";

// One line: at x the mean of a bucket, with its least and greatest. `null`: nothing finite is there.
export interface Line {
  label: string; x: number[]; mid: (number | null)[]; low: (number | null)[] | null; high: (number | null)[] | null;
  bad: [number, number][];  // x and how many values that are no number
  faint: boolean;           // replaced by a later attempt
  colour?: number;          // its place in the table of colours, else that among the lines
}
// `time`: x is milliseconds. `top`: y goes from 0 to there. `together`: charts of the same word follow one cursor. `axis`: where steps lie.
export interface Look { time?: boolean; top?: number; together?: string; axis?: (() => StepAxis) | undefined }
export interface Events { point: (x: number | null) => void; range: (from: number, to: number) => void; whole: () => void }

const ABOVE = 22; // over the lines, for signs of marks
const LANE = 8;  // CSS pixels under the lines, for what is no number
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function short(value: number): string {
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-3 || size >= 1e6)) return Number(value.toPrecision(3)).toExponential().replace("e+", "e");
  return String(Number(value.toPrecision(5)));
}

const axis_number = (value: number) => {
  const size = Math.abs(value);
  return value !== 0 && (size < 1e-3 || size >= 1e5) ? Number(value.toPrecision(3)).toExponential().replace("e+", "e") : String(Number(value.toPrecision(5)));
};

// Few values far beyond all others do not flatten these: they are arrows at the edge.
const FAR = 4;  // times what nine of ten values span
function near_range(lines: Line[]): [number, number] | null {
  const all = lines.flatMap((line) => [...(line.low ?? line.mid), ...(line.high ?? line.mid)]).filter((one): one is number => one !== null).sort((a, b) => a - b);
  if (all.length < 20) return null;
  const low = all[Math.floor(all.length * 0.05)]!;
  const high = all[Math.ceil(all.length * 0.95) - 1]!;
  const span = FAR * (high - low || Math.abs(high) || 1);
  const near = all.filter((one) => one >= low - span && one <= high + span);
  return near.length === all.length ? null : [near[0]!, near[near.length - 1]!];
}

function usual_stride(x: number[]): number {
  const strides = x.slice(1).map((one, at) => one - x[at]!).sort((a, b) => a - b);
  return strides[strides.length >> 1] ?? 1;
}

// One x for all lines. Where a line has three of its usual strides without a value it is not joined; where
// only other lines have one it is.
function aligned(lines: Line[], log: boolean): uPlot.AlignedData {
  const holes = lines.map((line) => {
    const stride = usual_stride(line.x);
    return line.x.flatMap((x, at) => at > 0 && x - line.x[at - 1]! > 3 * stride ? [line.x[at - 1]! + stride] : []);
  });
  const all = [...new Set([...lines.flatMap((line) => line.x), ...holes.flat()])].sort((a, b) => a - b);
  const place = new Map(all.map((x, at) => [x, at]));
  const drawn = (value: number | null) => value === null || (log && value <= 0) ? null : value;
  const data: (number | null | undefined)[][] = [all];
  lines.forEach((line, which) => {
    for (const column of [line.mid, line.low ?? line.mid, line.high ?? line.mid]) {
      const out = new Array<number | null | undefined>(all.length).fill(undefined);
      for (const x of holes[which]!) out[place.get(x)!] = null;
      line.x.forEach((x, at) => { out[place.get(x)!] = drawn(column[at] ?? null); });
      data.push(out);
    }
  });
  return data as uPlot.AlignedData;
}

// Values that no line reaches, because nothing finite is beside them: these are dots.
function lone(plot: uPlot, which: number): number[] | null {
  const all = ((plot.data[which] ?? []) as (number | null | undefined)[]).flatMap((value, at) => (value === undefined ? [] : [{ value, at }]));  // not of other lines' x
  const out = all.filter((one, at) => one.value !== null && (all[at - 1]?.value ?? null) === null && (all[at + 1]?.value ?? null) === null);
  return out.length > 0 ? out.map((one) => one.at) : null;
}

function series_of(lines: Line[]): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  lines.forEach((line, at) => {
    const stroke = colour_of(line.colour ?? at);
    series.push({ label: line.label, stroke, width: line.faint ? 1 : 2, alpha: line.faint ? 0.45 : 1,
      dash: line.faint ? [3, 4] : dashes_of(line.colour ?? at), points: { show: false, size: 6, fill: stroke, filter: lone } });
    for (let edge = 0; edge < 2; edge += 1) series.push({ stroke: "transparent", width: 0, points: { show: false } });
    if (line.low) bands.push({ series: [3 * at + 3, 3 * at + 2], fill: stroke + "33" });
  });
  return { series, bands };
}

export class Chart {
  private plot: uPlot;
  private lines: Line[] = [];
  private marks: Mark[] = [];
  private stretches: Stretch[] = [];
  private near: [number, number] | null = null;
  private at: number | null = null;
  private shape = "";
  private readonly watch: ResizeObserver;
  private readonly others: CursorPlace | null;
  private readonly places: MarkPlaces;

  constructor(private readonly box: HTMLElement, private readonly events: Events, private log: boolean, private readonly look: Look = {}) {
    this.others = look.together ? share_cursor(look.together, (x) => { this.follow(x); this.events.point(x); }) : null;
    this.places = new MarkPlaces(box, ABOVE);
    this.plot = this.made();
    this.watch = new ResizeObserver(() => this.plot.setSize(this.size()));
    this.watch.observe(box);
    this.fingers();
  }

  show(lines: Line[], marks: Mark[], log: boolean, from: number, to: number, stretches: Stretch[] = []): void {
    this.lines = lines;
    this.marks = marks;
    this.stretches = stretches;
    const shape = `${log}${is_dark()}${stretches.length > 0}${lines.map((line) => `${line.label}/${line.low !== null}/${line.faint}/${line.colour}`).join()}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.log = log;
      this.plot.destroy();
      this.plot = this.made();
      this.fingers();
    }
    this.near = log || this.look.top !== undefined ? null : near_range(lines);
    this.plot.setData(aligned(lines, log), false);
    this.plot.setScale("x", { min: from, max: Math.max(to - 1, from + 1) + (this.look.axis?.().nudge() ?? 0) });
  }

  // Moves what is read out by steps that have a value; tells which it is then.
  step(by: number): void {
    const x = this.plot.data[0];
    if (x.length === 0) return;
    const now = this.at === null ? (by > 0 ? -1 : x.length) : this.nearest(this.at);
    this.put(x[Math.min(x.length - 1, Math.max(0, now + by))]!);
  }
  // Shows the cursor where another chart has it.
  follow(x: number | null): void {
    this.at = x;
    this.plot.setCursor(x === null ? { left: -10, top: -10 } : { left: this.plot.valToPos(x, "x"), top: 10 }, false);
  }
  put(x: number): void { this.follow(x); this.point(x); }
  zoom(by: number): void {
    const { min, max } = this.plot.scales.x!;
    if (min == null || max == null) return;
    const middle = this.at ?? (min + max) / 2;
    const half = Math.max(2, (max - min) * by / 2);
    this.events.range(Math.max(0, Math.round(middle - half)), Math.round(middle + half) + 1);
  }
  pan(by: number): void {
    const { min, max } = this.plot.scales.x!;
    if (min == null || max == null) return;
    const from = Math.max(0, Math.round(min + (max - min) * by));
    this.events.range(from, from + Math.round(max - min) + 1);
  }
  leave(): void { this.watch.disconnect(); this.others?.leave(); this.plot.destroy(); }
  drawn() { const { plot, lines, marks } = this; return { plot, lines, marks, time: this.look.time === true, over: (on: uPlot) => this.draw(on) }; }
  private nearest(x: number): number {
    const all = this.plot.data[0];
    let best = 0;
    all.forEach((one, at) => { if (Math.abs(one - x) < Math.abs(all[best]! - x)) best = at; });
    return best;
  }
  private point(x: number | null): void { this.at = x; this.events.point(x); this.others?.tell(x); }
  private fingers(): void { follow_fingers(this.plot, (from, to) => this.events.range(from, to), () => this.events.whole()); }
  private size() { return { width: Math.max(200, this.box.clientWidth), height: this.box.clientWidth < 500 ? 180 : 220 }; }

  private y_range(min: number | null, max: number | null): uPlot.Range.MinMax {
    if (this.look.top !== undefined) return [0, this.look.top];
    if (min === null || max === null) return this.log ? [1, 10] : [0, 1];  // a logarithmic axis has no 0
    if (this.log) return min === max ? [min / 2, max * 2] : uPlot.rangeLog(min, max, 10, true);
    const [low, high] = this.near ?? [min, max];
    return uPlot.rangeNum(Math.max(min, low), Math.min(max, high), 0.1, true);
  }

  private made(): uPlot {
    const axis = (more: uPlot.Axis): uPlot.Axis => ({ stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 },
      ticks: { stroke: css("--line"), width: 1 }, font: "13px system-ui, sans-serif", ...more });
    const { series, bands } = series_of(this.lines);
    return new uPlot({
      ...this.size(), series, bands, legend: { show: false }, padding: [ABOVE, 12, this.stretches.length > 0 ? BAND : 0, 0],
      scales: { x: { time: false, ...scale_of(this.look.axis) }, y: { distr: this.log ? 3 : 1, range: (_, min, max) => this.y_range(min, max) } },
      axes: [axis(this.look.time ? { incrs: TIME_STRIDES, space: 80, values: (_, all) => all.map(clock) } : this.look.axis ? ticks_of(this.look.axis) : { values: (_, all) => all.map((x) => Number.isInteger(x) ? String(x) : "") }),
        axis({ size: 64, values: (_, all) => all.map((y) => y === null ? "" : axis_number(y)) })],
      cursor: { drag: { x: true, y: false, setScale: false }, points: { show: (plot, at) => at % 3 === 1 ? uPlot_point(plot, at) : (undefined as unknown as HTMLElement) } },
      hooks: {
        draw: [(plot) => this.draw(plot)],
        setCursor: [(plot) => {
          if ((plot.cursor.left ?? -1) < 0) return;
          const at = plot.cursor.idx;
          if (at != null) this.point(plot.data[0][at] ?? null);
        }],
        setSelect: [(plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          const from = Math.floor(plot.posToVal(left, "x"));
          const to = Math.ceil(plot.posToVal(left + width, "x")) + 1;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          if (to - from >= 2) this.events.range(Math.max(0, from), to);
        }],
      },
    }, aligned(this.lines, this.log), this.box);
  }

  // Marks above the lines, and in the lane under them what is no number.
  private draw(plot: uPlot): void {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    const unit = devicePixelRatio;
    const colours = mark_colours();
    ctx.save();
    ctx.fillStyle = css("--bad");
    for (const line of this.lines) {
      for (const [x] of line.bad) {
        const at = plot.valToPos(x, "x", true);
        if (at >= left && at <= left + width) ctx.fillRect(at - unit, top + height - LANE * unit, 2 * unit, LANE * unit);
      }
    }
    this.draw_far(plot);
    draw_band(plot, this.stretches, css("--text"), [css("--line"), css("--ground")]);
    ctx.font = `${14 * unit}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    const seen = [...this.marks].sort((a, b) => a.x - b.x).map((mark) => ({ mark, at: plot.valToPos(mark.x, "x", true) }))
      .filter((one) => one.at >= left - 1 && one.at <= left + width + 1);
    // Signs of near steps stand side by side, as far right as there is room.
    const signs: number[] = [];
    seen.forEach((one, at) => { signs.push(Math.max(one.at, at > 0 ? signs[at - 1]! + 14 * unit : -Infinity)); });
    for (let at = seen.length - 1, most = left + width + 4 * unit; at >= 0; at -= 1, most -= 14 * unit)
      most = signs[at] = Math.min(signs[at]!, most);
    this.places.put(seen.map(({ mark }, at) => ({ mark, at: signs[at]! / unit })));
    seen.forEach(({ mark, at }, which) => {
      ctx.strokeStyle = ctx.fillStyle = colours[mark.kind];
      ctx.lineWidth = unit;
      ctx.setLineDash(mark.kind === "sign" || mark.kind === "replay" ? [4 * unit, 4 * unit] : []);
      ctx.beginPath();
      ctx.moveTo(at, top - 2 * unit);
      ctx.lineTo(at, top + height);
      ctx.stroke();
      ctx.fillText(MARK_SIGNS[mark.kind], signs[which]!, top - 5 * unit);
    });
    this.draw_labels(plot, seen);
    ctx.restore();
  }

  // What stands beside the line of a mark: each on a row of its own, on the side that has room.
  private draw_labels(plot: uPlot, seen: { mark: Mark; at: number }[]): void {
    const { ctx } = plot;
    const { left, top, width } = plot.bbox;
    const unit = devicePixelRatio;
    ctx.font = `${12 * unit}px system-ui, sans-serif`;
    ctx.fillStyle = css("--text");
    seen.filter((one) => one.mark.label).forEach(({ mark, at }, row) => {
      const on_left = at > left + width / 2;
      ctx.textAlign = on_left ? "right" : "left";
      ctx.fillText(mark.label!, at + (on_left ? -4 : 4) * unit, top + (14 + 15 * (row % 8)) * unit);
    });
  }

  // An arrow where values lie beyond the edge, and what the farthest is.
  private draw_far(plot: uPlot): void {
    if (!this.near) return;
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    const unit = devicePixelRatio;
    ctx.font = `${12 * unit}px system-ui, sans-serif`;
    this.lines.forEach((line, which) => {
      ctx.fillStyle = colour_of(line.colour ?? which);
      for (const above of [true, false]) {
        const column = (above ? line.high : line.low) ?? line.mid;
        const edge = above ? plot.scales.y!.max! : plot.scales.y!.min!;
        const far = line.x.flatMap((x, at) => {
          const value = column[at] ?? null;
          const place = plot.valToPos(x, "x", true);
          return value !== null && (above ? value > edge : value < edge) && place >= left && place <= left + width ? [{ value, place }] : [];
        });
        if (far.length === 0) continue;
        const y = above ? top + 11 * unit : top + height - LANE * unit;
        ctx.textAlign = "center";
        for (const one of far) ctx.fillText(above ? "▲" : "▼", one.place, y);
        const most = far.reduce((a, b) => (above ? b.value > a.value : b.value < a.value) ? b : a);
        const side = most.place > left + width / 2 ? -1 : 1;
        ctx.textAlign = side < 0 ? "right" : "left";
        ctx.fillText(short(most.value), beside_arrows(far, most.place, side, 14 * unit) + side * 10 * unit, y);
      }
    });
  }
}

function uPlot_point(plot: uPlot, at: number): HTMLElement {
  const point = document.createElement("div");
  point.style.background = String((plot.series[at]!.stroke as () => string)?.() ?? "");
  return point;
}
