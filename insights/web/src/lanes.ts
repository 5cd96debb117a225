// Lanes of bars on a canvas: a lane for each worker and track, a range that is dragged over.
import { fine_words } from "./clock";
import { phase_colour } from "./phase_colours";
import { bars_of, type Bar, type Spans } from "./span_data";
import { watch_theme } from "./look";

export interface LaneEvents { point: (lane: number, bar: Bar | null) => void; brush: (from: number, to: number) => void; whole: () => void }
export type Range = { from: number; to: number } | null;

const ROW = 16;
const GAP = 6;
const AXIS = 22;
const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500].flatMap((one) => [one, one * 1e3, one * 1e6]).concat([1e9, 2e9, 5e9]).sort((a, b) => a - b);
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function offset_words(micros: number): string {
  if (micros >= 1e6) return `${Number((micros / 1e6).toFixed(3))} s`;
  if (micros >= 1e3) return `${Number((micros / 1e3).toFixed(3))} ms`;
  return `${micros} µs`;
}

export class LanesCanvas {
  private readonly canvas = document.createElement("canvas");
  private answer: Spans | null = null;
  private bars: Bar[][] = [];
  private tops: number[] = [];
  private brushed: Range = null;
  private cursor: [number, number] | null = null;  // lane and bar
  private dragged: [number, number] | null = null; // where it began and is, in CSS pixels
  private readonly watch: ResizeObserver;
  private readonly unwatch: () => void;
  private readonly again = () => this.draw();

  constructor(private readonly box: HTMLElement, private readonly events: LaneEvents) {
    box.append(this.canvas);
    this.watch = new ResizeObserver(this.again);
    this.watch.observe(box);
    this.unwatch = watch_theme(this.again);
    this.canvas.addEventListener("pointerdown", (event) => { this.dragged = [this.x_in(event), this.x_in(event)]; });
    this.canvas.addEventListener("pointermove", (event) => this.moved(event));
    this.canvas.addEventListener("pointerup", () => this.released());
    this.canvas.addEventListener("pointerleave", () => this.released());
    this.canvas.addEventListener("dblclick", () => this.events.whole());
  }
  leave(): void { this.watch.disconnect(); this.unwatch(); this.canvas.remove(); }

  show(answer: Spans, brushed: Range): void {
    if (answer !== this.answer) {
      this.bars = answer.lanes.map((lane) => bars_of(lane, answer.names));
      if (this.cursor && !this.bars[this.cursor[0]]?.[this.cursor[1]]) this.cursor = null;
    }
    this.answer = answer;
    this.brushed = brushed;
    this.draw();
  }

  // With keys: the next bar of the lane, or the bar at the same time of the next lane.
  step(lanes: number, bars: number): void {
    if (!this.answer || this.bars.length === 0) return;
    const [lane, bar] = this.cursor ?? [0, -Math.sign(bars || 1)];
    const next = Math.min(this.bars.length - 1, Math.max(0, lane + lanes));
    const all = this.bars[next]!;
    const from = this.bars[lane]?.[bar]?.start ?? 0;
    const place = lanes === 0 ? bar + bars : Math.max(0, all.findIndex((one) => one.start + one.length > from));
    this.put(next, Math.min(all.length - 1, Math.max(0, place)));
  }
  choose(): void {
    const bar = this.cursor && this.bars[this.cursor[0]]?.[this.cursor[1]];
    if (bar && this.answer) this.events.brush(this.answer.from + bar.start, this.answer.from + bar.start + Math.max(1, bar.length));
  }

  private put(lane: number, bar: number): void {
    this.cursor = [lane, bar];
    this.draw();
    this.events.point(lane, this.bars[lane]?.[bar] ?? null);
  }
  private place() {
    const width = Math.max(200, this.box.clientWidth);
    const left = width > 600 ? 180 : 0;  // narrow: names stand over their lanes
    return { left, width: width - left - 1, over: width > 600 ? 0 : 16 };
  }
  private x_in(event: PointerEvent): number { return event.clientX - this.canvas.getBoundingClientRect().left; }
  private time_at(x: number): number {
    const { left, width } = this.place();
    const { from, to } = this.answer!;
    return from + Math.min(1, Math.max(0, (x - left) / width)) * (to - from);
  }
  private moved(event: PointerEvent): void {
    if (!this.answer) return;
    const x = this.x_in(event);
    if (this.dragged) { this.dragged[1] = x; this.draw(); return; }
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    const lane = this.tops.findIndex((top, at) => y >= top && y < (this.tops[at + 1] ?? Infinity));
    const all = this.bars[lane];
    if (!all) return;
    const at = this.time_at(x) - this.answer.from;
    const near = (this.answer.to - this.answer.from) / this.place().width;
    const row = Math.floor((y - this.tops[lane]! - this.place().over) / ROW);
    let best = -1;
    all.forEach((bar, which) => {
      if (bar.start - near <= at && bar.start + bar.length + near >= at && (best < 0 || Math.abs(bar.depth - row) <= Math.abs(all[best]!.depth - row))) best = which;
    });
    if (best >= 0) this.put(lane, best);
  }
  private released(): void {
    const dragged = this.dragged;
    this.dragged = null;
    if (!dragged || !this.answer) return;
    if (Math.abs(dragged[1] - dragged[0]) < 4) return this.draw();
    const [from, to] = [Math.min(...dragged), Math.max(...dragged)].map((x) => Math.round(this.time_at(x)));
    if (to! > from!) this.events.brush(from!, to!);
  }

  private draw(): void {
    if (!this.answer) return;
    const unit = devicePixelRatio || 1;
    const { left, width, over } = this.place();
    const deep = this.bars.map((all) => 1 + all.reduce((most, bar) => Math.max(most, bar.depth), 0));
    this.tops = [];
    let height = 4;
    for (const rows of deep) { this.tops.push(height); height += rows * ROW + over + GAP; }
    this.canvas.style.width = `${left + width + 1}px`;
    this.canvas.style.height = `${height + AXIS}px`;
    this.canvas.width = Math.round((left + width + 1) * unit);
    this.canvas.height = Math.round((height + AXIS) * unit);
    const ctx = this.canvas.getContext("2d")!;
    ctx.scale(unit, unit);
    const { from, to } = this.answer;
    const x_of = (micros: number) => left + micros / (to - from) * width;
    ctx.font = "13px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    this.answer.lanes.forEach((lane, at) => {
      const top = this.tops[at]!;
      ctx.fillStyle = css("--ground");
      ctx.fillRect(left, top + over, width, deep[at]! * ROW);
      ctx.fillStyle = css("--dim");
      ctx.textAlign = over ? "left" : "right";
      let text = `rank ${lane.rank} ${lane.track}`;
      while (text.length > 6 && ctx.measureText(text).width > (over ? width : left - 8)) text = `${text.slice(0, -2)}…`;
      ctx.fillText(text, over ? 0 : left - 6, top + ROW / 2);
      this.draw_bars(ctx, this.bars[at]!, top + over, x_of);
    });
    this.draw_axis(ctx, height, x_of);
    this.draw_range(ctx, height, x_of);
  }
  private draw_bars(ctx: CanvasRenderingContext2D, bars: Bar[], top: number, x_of: (micros: number) => number): void {
    ctx.textAlign = "left";
    const edge = x_of(0);
    const end = edge + this.place().width;
    for (const bar of bars) {
      const x = Math.max(edge, x_of(bar.start));
      const wide = Math.max(1, Math.min(end, x_of(bar.start + bar.length)) - x);
      const y = top + bar.depth * ROW + 1;
      ctx.fillStyle = phase_colour(bar.name);
      ctx.fillRect(x, y, wide > 3 ? wide - 1 : wide, ROW - 2);
      if (bar.merged > 1 && wide > 3) {  // several: a line through it
        ctx.fillStyle = "#fff";
        ctx.fillRect(x, y + ROW / 2 - 1, wide - 1, 1);
      } else if (wide > 40 && ctx.measureText(bar.name).width < wide - 6) {
        ctx.fillStyle = "#000";
        ctx.font = "600 12px system-ui, sans-serif";
        ctx.fillStyle = light(phase_colour(bar.name)) ? "#000" : "#fff";
        ctx.fillText(bar.name, x + 3, y + (ROW - 2) / 2 + 0.5);
        ctx.font = "13px system-ui, sans-serif";
      }
    }
  }
  private draw_axis(ctx: CanvasRenderingContext2D, height: number, x_of: (micros: number) => number): void {
    const { left, width } = this.place();
    const span = this.answer!.to - this.answer!.from;
    const stride = STRIDES.find((one) => one >= span / Math.max(2, width / 100)) ?? span;
    ctx.fillStyle = css("--dim");
    ctx.textBaseline = "top";
    for (let at = 0; at < span; at += stride) {
      ctx.fillRect(x_of(at), height, 1, 4);
      ctx.textAlign = at === 0 ? "left" : "center";
      const text = at === 0 ? `${fine_words(this.answer!.from / 1000, span / 1000)}` : `+${offset_words(at)}`;
      if (at === 0 || (x_of(at) > left + 140 && x_of(at) < left + width - 40)) ctx.fillText(text, x_of(at), height + 6);
    }
  }
  private draw_range(ctx: CanvasRenderingContext2D, height: number, x_of: (micros: number) => number): void {
    const { from } = this.answer!;
    const edges = this.dragged && Math.abs(this.dragged[1] - this.dragged[0]) >= 4 ? [Math.min(...this.dragged), Math.max(...this.dragged)]
      : this.brushed ? [x_of(this.brushed.from - from), x_of(this.brushed.to - from)] : null;
    const accent = css("--accent");
    if (edges) {
      ctx.fillStyle = accent;
      ctx.globalAlpha = 0.18;
      ctx.fillRect(edges[0]!, 0, Math.max(2, edges[1]! - edges[0]!), height);
      ctx.globalAlpha = 1;
      for (const x of edges) ctx.fillRect(x - 0.5, 0, 1, height);
    }
    const bar = this.cursor && this.bars[this.cursor[0]]?.[this.cursor[1]];
    if (!bar || !this.cursor) return;
    ctx.strokeStyle = css("--text");
    ctx.lineWidth = 2;
    ctx.strokeRect(x_of(bar.start), this.tops[this.cursor[0]]! + this.place().over + bar.depth * ROW + 1, Math.max(3, x_of(bar.start + bar.length) - x_of(bar.start)), ROW - 2);
  }
}

function light(colour: string): boolean {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return red! * 0.3 + green! * 0.59 + blue! * 0.11 > 130;
}
