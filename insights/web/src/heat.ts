// A heat map on a canvas: one pixel per cell, then blown up; what is not finite is hatched, what is not there is chequered.
import { watch_theme } from "./look";
import { mark_colours, MarkPlaces, MARK_SIGNS, type Mark } from "./marks";
import { clock, TIME_STRIDES } from "./clock";
import { HIGHEST, NOT_FINITE, NOT_POSITIVE, NOTHING, row_words, type Heat } from "./heat_data";
import { canvas_of, checker, css, hatch } from "./heat_patterns";
import { share_cursor, steps_of_mode, type CursorPlace } from "./shared_cursor";

// `point` is told too when another figure has moved the cursor that all share.
export interface HeatEvents { point: (row: number, column: number) => void; choose: (row: number, column: number) => void }

// Viridis: dark is low.
const ANCHORS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];
const ZERO = [96, 100, 108];
const TABLE = table();
const AXIS = 22;   // CSS pixels under the cells
const ABOVE = 18;  // over them, for marks

function table(): Uint32Array {
  const out = new Uint32Array(256);
  const packed = (one: number[], opaque = 255) => (opaque << 24 | one[2]! << 16 | one[1]! << 8 | one[0]!) >>> 0;
  for (let at = 0; at <= HIGHEST; at += 1) {
    const place = at / HIGHEST * (ANCHORS.length - 1);
    const low = Math.min(Math.floor(place), ANCHORS.length - 2);
    out[at] = packed(ANCHORS[low]!.map((one, k) => Math.round(one + (ANCHORS[low + 1]![k]! - one) * (place - low))));
  }
  out[NOT_POSITIVE] = packed(ZERO);
  out[NOT_FINITE] = out[NOTHING] = 0;
  return out;
}

function painted(heat: Heat, colour: (cell: number) => number): HTMLCanvasElement {
  const out = canvas_of(heat.columns, heat.rows.length);
  const image = new ImageData(out.width, out.height);
  const pixels = new Uint32Array(image.data.buffer);
  heat.cells.forEach((cell, at) => { pixels[at] = colour(cell); });
  out.getContext("2d")!.putImageData(image, 0, 0);
  return out;
}

export class HeatCanvas {
  private readonly canvas = document.createElement("canvas");
  private heat: Heat | null = null;
  private marks: Mark[] = [];
  private selected: string | null = null;
  private cursor: [number, number] | null = null;
  private followed = false;  // the cursor is where another figure has it
  private group: string | null = null;
  private others: CursorPlace | null = null;
  private layers: HTMLCanvasElement[] = [];  // colours, not finite, nothing
  private readonly watch: ResizeObserver;
  private readonly places: MarkPlaces;
  private readonly unwatch: () => void;
  private still: HTMLCanvasElement | null = null;  // all but the cursor
  private readonly again = () => this.draw();

  constructor(private readonly box: HTMLElement, private readonly events: HeatEvents, private readonly most: number) {
    box.append(this.canvas);
    this.places = new MarkPlaces(box, ABOVE);
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(box);
    this.unwatch = watch_theme(this.again);
    this.canvas.addEventListener("pointermove", (event) => this.at(event, (row, column) => this.point(row, column)));
    this.canvas.addEventListener("click", (event) => this.at(event, (row, column) => { this.point(row, column); this.events.choose(row, column); }));
  }
  leave(): void { this.watch.disconnect(); this.unwatch(); this.others?.leave(); this.canvas.remove(); }

  show(heat: Heat, marks: Mark[], selected: string | null): void {
    if (heat !== this.heat)
      this.layers = [painted(heat, (cell) => (heat.bins && cell === NOT_POSITIVE ? 0 : TABLE[heat.time && cell <= HIGHEST ? HIGHEST - cell : cell]!)), painted(heat, (cell) => (cell === NOT_FINITE ? 0xff000000 : 0)),
        painted(heat, (cell) => (cell === NOTHING ? 0xff000000 : 0))];
    this.heat = heat;
    this.marks = marks;
    this.selected = selected;
    if (this.cursor && (this.cursor[0] >= heat.rows.length || this.cursor[1] >= heat.columns)) this.cursor = null;
    const group = heat.time ? null : steps_of_mode(heat.mode);
    if (group !== this.group) {
      this.others?.leave();
      this.others = group === null ? null : share_cursor(group, (x) => this.follow(x));
      this.group = group;
    }
    this.draw();
  }

  // Shows the cursor where another figure has it: in the row that was read last, else in the chosen one.
  follow(x: number | null): void {
    if (!this.heat || x === null || this.heat.rows.length === 0) return;
    const column = Math.floor((x - this.heat.from) / this.heat.width);
    const chosen = this.heat.rows.findIndex((one) => one.name === this.selected);
    const row = this.cursor?.[0] ?? Math.max(0, chosen);
    if (this.cursor?.[0] === row && this.cursor[1] === column) return;
    this.followed = true;
    this.cursor = column >= 0 && column < this.heat.columns ? [row, column] : null;
    this.draw_cursor_on();
    if (this.cursor) this.events.point(row, column);
  }

  step(rows: number, columns: number): void {
    if (!this.heat) return;
    const [row, column] = this.cursor ?? [0, this.heat.columns - 1];
    this.point(Math.min(this.heat.rows.length - 1, Math.max(0, row + rows)), Math.min(this.heat.columns - 1, Math.max(0, column + columns)));
  }
  choose(): void { if (this.cursor) this.events.choose(...this.cursor); }

  private point(row: number, column: number): void {
    if (!this.followed && this.cursor?.[0] === row && this.cursor[1] === column) return;
    this.followed = false;
    this.cursor = [row, column];
    this.draw_cursor_on();
    this.events.point(row, column);
    this.others?.tell(this.heat!.from + (column + 1) * this.heat!.width - 1);
  }

  // Left edge, width and height of the cells, in CSS pixels.
  private place() {
    const width = Math.max(160, this.box.clientWidth);
    const rows = Math.max(1, this.heat?.rows.length ?? 1);
    const bins = this.heat?.bins !== undefined;
    const named = rows <= 40 && width > 480 && !bins;
    const left = bins ? 64 : named ? Math.min(220, Math.round(width * 0.3)) : 0;
    const row = Math.min(18, Math.max(1, Math.floor(this.most / rows)));
    return { left, width: width - left - 1, height: rows * row, row, named: named && row >= 11 };
  }
  private at(event: PointerEvent | MouseEvent, then: (row: number, column: number) => void): void {
    if (!this.heat) return;
    const bounds = this.canvas.getBoundingClientRect();
    const { left, width, row } = this.place();
    const column = Math.floor((event.clientX - bounds.left - left) / width * this.heat.columns);
    const line = Math.floor((event.clientY - bounds.top - ABOVE) / row);
    if (column >= 0 && column < this.heat.columns && line >= 0 && line < this.heat.rows.length) then(line, column);
  }

  // All anew: what is shown, its size or its colours have changed.
  private draw(): void {
    this.still = null;
    this.draw_cursor_on();
  }

  // The cursor moves over a picture that stays.
  private draw_cursor_on(): void {
    if (!this.heat) return;
    const unit = devicePixelRatio || 1;
    if (!this.still) this.still = this.picture(unit);
    const ctx = this.canvas.getContext("2d")!;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    ctx.drawImage(this.still, 0, 0);
    ctx.scale(unit, unit);
    this.draw_cursor(ctx);
  }

  // What a file of the picture is made from: `paint` draws all but the cursor, in CSS pixels.
  drawn() {
    const { heat, marks } = this;
    if (!heat) return null;
    const { left, width, height } = this.place();
    const ramp = painted({ ...heat, columns: HIGHEST + 1, rows: heat.rows.slice(0, 1), cells: Uint8Array.from({ length: HIGHEST + 1 }, (_, at) => at) }, (cell) => TABLE[heat.time ? HIGHEST - cell : cell]!);
    return { heat, marks, ramp, left, width: left + width + 1, height: ABOVE + height + AXIS, paint: (ctx: CanvasRenderingContext2D) => this.paint(ctx, 1) };
  }

  private picture(unit: number): HTMLCanvasElement {
    const { left, width, height } = this.place();
    this.canvas.style.width = `${left + width + 1}px`;
    this.canvas.style.height = `${ABOVE + height + AXIS}px`;
    this.canvas.width = Math.round((left + width + 1) * unit);
    this.canvas.height = Math.round((ABOVE + height + AXIS) * unit);
    const out = canvas_of(this.canvas.width, this.canvas.height);
    this.paint(out.getContext("2d")!, unit);
    return out;
  }
  private paint(ctx: CanvasRenderingContext2D, unit: number): void {
    const { left, width, height } = this.place();
    const area: [number, number, number, number] = [left * unit, ABOVE * unit, width * unit, height * unit];
    ctx.imageSmoothingEnabled = false;
    this.patterned(ctx, this.layers[2]!, checker(unit), area);
    ctx.drawImage(this.layers[0]!, ...area);
    this.patterned(ctx, this.layers[1]!, hatch(unit), area);
    ctx.scale(unit, unit);
    this.draw_names(ctx);
    this.draw_axis(ctx);
    this.draw_marks(ctx);
  }

  private patterned(ctx: CanvasRenderingContext2D, mask: HTMLCanvasElement, pattern: HTMLCanvasElement, [x, y, width, height]: [number, number, number, number]): void {
    const layer = canvas_of(Math.round(width), Math.round(height));
    const on = layer.getContext("2d")!;
    on.imageSmoothingEnabled = false;
    on.drawImage(mask, 0, 0, layer.width, layer.height);
    on.globalCompositeOperation = "source-in";
    on.fillStyle = on.createPattern(pattern, "repeat")!;
    on.fillRect(0, 0, layer.width, layer.height);
    ctx.drawImage(layer, x, y);
  }

  private draw_names(ctx: CanvasRenderingContext2D): void {
    const { left, row, named } = this.place();
    if (this.heat!.bins) this.draw_bins(ctx, this.heat!.bins);
    if (!named || left === 0) return;
    ctx.font = `${Math.min(13, row)}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    this.heat!.rows.forEach((one, at) => {
      ctx.fillStyle = css(one.first_bad_step !== null ? "--bad" : one.name === this.selected ? "--accent" : "--dim");
      let text = row_words(one);
      while (text.length > 4 && ctx.measureText(text).width > left - 8) text = `…${text.slice(text.startsWith("…") ? 2 : 1)}`;
      ctx.fillText(text, left - 6, ABOVE + (at + 0.5) * row);
    });
  }

  private draw_bins(ctx: CanvasRenderingContext2D, bins: { at: number; text: string }[]): void {
    const { left, row, height, width } = this.place();
    ctx.font = "13px system-ui, sans-serif";
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    ctx.strokeStyle = css("--line");
    ctx.lineWidth = 1;
    ctx.strokeRect(left - 0.5, ABOVE - 0.5, width + 1, height + 1);
    ctx.fillStyle = css("--dim");
    let free = -Infinity;
    for (const { at, text } of bins) {
      const y = ABOVE + at * row;
      ctx.fillRect(left - 5, y - 0.5, 4, 1);
      if (y - free < 14) continue;
      free = y;
      ctx.fillText(text, left - 8, y);
    }
  }

  private x_of(step: number): number {
    const { left, width } = this.place();
    const heat = this.heat!;
    return left + (step - heat.from) / (heat.to - heat.from) * width;
  }
  private draw_axis(ctx: CanvasRenderingContext2D): void {
    const { left, width, height } = this.place();
    const heat = this.heat!;
    const rough = (heat.to - heat.from) / Math.max(2, Math.floor(width / 90));
    const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
    const stride = heat.time ? TIME_STRIDES.find((one) => one >= rough) ?? rough : Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough);
    ctx.font = "13px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    ctx.fillStyle = css("--dim");
    for (let step = Math.ceil(heat.from / stride) * stride; step < heat.to; step += stride) {
      const x = this.x_of(step + 0.5 * Math.min(1, heat.width));
      ctx.fillRect(x, ABOVE + height, 1, 4);
      const edge = heat.time ? 28 : 14;
      ctx.fillText(heat.time ? clock(step) : String(step), Math.min(Math.max(x, left + edge), left + width - edge), ABOVE + height + 6);
    }
  }
  private draw_marks(ctx: CanvasRenderingContext2D): void {
    const { height } = this.place();
    const heat = this.heat!;
    const colours = mark_colours();
    const places: { at: number; mark: Mark }[] = [];
    ctx.font = "13px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "alphabetic";
    const edge = this.canvas.width / (devicePixelRatio || 1) - 7;
    let free = -Infinity;
    for (const mark of [...this.marks].sort((a, b) => a.x - b.x)) {
      if (mark.x < heat.from || mark.x >= heat.to + heat.width) continue;
      const x = Math.min(this.x_of(mark.x + 0.5), edge);
      const sign = Math.max(x, free);
      free = sign + 13;
      ctx.fillStyle = colours[mark.kind];
      places.push({ at: sign, mark });
      ctx.fillRect(x - 0.5, ABOVE - 4, 1, height + 4);
    }
    // Those that the edge would cut move to the left, and push the others.
    let last = edge;
    for (const one of [...places].reverse()) {
      one.at = Math.min(one.at, last);
      last = one.at - 13;
      ctx.fillStyle = colours[one.mark.kind];
      ctx.fillText(MARK_SIGNS[one.mark.kind], one.at, ABOVE - 6);
    }
    this.places.put(places);
  }
  private draw_cursor(ctx: CanvasRenderingContext2D): void {
    const { left, width, row, height } = this.place();
    const heat = this.heat!;
    ctx.strokeStyle = css("--accent");
    ctx.lineWidth = 2;
    const chosen = heat.rows.findIndex((one) => one.name === this.selected);
    if (chosen >= 0) ctx.strokeRect(left, ABOVE + chosen * row - 0.5, width, Math.max(row, 3) + 1);
    if (!this.cursor) return;
    const x = left + (this.cursor[1] + 0.5) / heat.columns * width;
    const y = ABOVE + (this.cursor[0] + 0.5) * row;
    for (const [colour, wide] of [["#000", 3], ["#fff", 1]] as const) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = wide;
      ctx.beginPath();
      ctx.moveTo(x, ABOVE); ctx.lineTo(x, ABOVE + height);
      if (!this.followed) { ctx.moveTo(left, y); ctx.lineTo(left + width, y); }
      ctx.stroke();
    }
  }
}
