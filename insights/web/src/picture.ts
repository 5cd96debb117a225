// What a chart or a heat map shows now, as a file: an SVG written from its data, or the same drawing as a PNG.
import { Chart, short } from "./chart";
import type { HeatCanvas } from "./heat";
import { clock, clock_words } from "./clock";
import { colour_of, dashes_of } from "./colours";
import { canvas_of, checker, css, hatch } from "./heat_patterns";
import { moment_words, zone } from "./look";
import { MARK_SIGNS, mark_colours, type Mark } from "./marks";
import type { PictureWords } from "./save_picture";
import { shown_run } from "./shown_run";
import { X_WORDS } from "./step_axis";
import { SvgPen } from "./svg_pen";
import uPlot from "uplot";

const EDGE = 12;        // CSS pixels around everything
const LINE = 18;        // from one line of text to the next
const MOST_MARKS = 12;  // that are told in words
const FAR = 20_000;     // CSS pixels: programs fail on places that are farther away
const SHARPNESS = 2;    // pixels of a PNG for each CSS pixel
const TEXT = "13px system-ui, sans-serif";

type Ticks = uPlot.Axis & { _splits?: number[]; _values?: (string | null)[] };  // uPlot has no other way to tell them
interface Range { words: string; file: string }

const range_of = (from: number, to: number, time: boolean, x: string): Range => {
  if (time) return { words: `${clock(from)} to ${clock_words(to)}`, file: `${moment_words(new Date(from).toISOString(), zone.value).slice(0, 10)}-${clock(from)}-to-${clock(to)}` };
  const by_step = Object.values(X_WORDS).includes(x);  // whatever steps are drawn by, the range is one of steps
  const name = by_step ? "steps" : x;
  const [low, high] = by_step ? [String(Math.round(from)), String(Math.round(to))] : [short(from), short(to)];
  return { words: `${name} ${low} to ${high}`, file: `${name}-${low}-to-${high}` };
};

// "digits-loss-steps-0-to-190"
export const file_name = (parts: string[]) => parts.filter(Boolean).map((part) => part.replace(/[^\p{L}\p{N}._+-]+/gu, "-").replace(/^[-.]+|-+$/g, "").slice(0, 80)).filter(Boolean).join("-");

// Words in as many lines as they need; gives where the next thing begins.
function write(pen: SvgPen, text: string, x: number, y: number, width: number): number {
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && pen.measureText(longer).width > width) { pen.fillText(line, x, y); y += LINE; line = word; } else line = longer;
  }
  pen.fillText(line, x, y);
  return y + LINE;
}

interface Key { text: string; wide: number; draw: (x: number, y: number) => void }
function write_keys(pen: SvgPen, keys: Key[], y: number, width: number): number {
  let x = EDGE;
  for (const { text, wide, draw } of keys) {
    pen.font = TEXT;
    const room = wide + 6 + pen.measureText(text).width;
    if (x > EDGE && x + room > EDGE + width) { x = EDGE; y += LINE; }
    draw(x, y);
    pen.fillStyle = css("--text");
    pen.fillText(text, x + wide + 6, y);
    x += room + 18;
  }
  return keys.length > 0 ? y + LINE : y;
}

function write_marks(pen: SvgPen, marks: Mark[], y: number, width: number): number {
  const colours = mark_colours();
  pen.font = TEXT;
  for (const mark of marks.slice(0, MOST_MARKS)) {
    pen.fillStyle = colours[mark.kind];
    pen.fillText(MARK_SIGNS[mark.kind], EDGE, y);
    pen.fillStyle = css("--text");
    y = write(pen, mark.text, EDGE + 20, y, width - 20);
  }
  pen.fillStyle = css("--dim");
  return marks.length > MOST_MARKS ? write(pen, `${marks.length - MOST_MARKS} more marks are drawn.`, EDGE, y, width) : y;
}

// Lines with their bands, each a group of its name.
function draw_lines(pen: SvgPen, chart: ReturnType<Chart["drawn"]>): void {
  const { plot, lines } = chart;
  const unit = devicePixelRatio;
  const { min, max } = plot.scales.x!;
  const all = plot.data[0];
  // What lies beyond the edges is left out, but for the nearest point of each line.
  const column = (which: number) => {
    const values = plot.data[which]! as (number | null | undefined)[];
    const has = (at: number) => values[at] !== undefined;
    let first = all.findIndex((x) => x >= min!);
    if (first < 0) first = all.length;
    let last = all.length - 1;
    while (last >= 0 && all[last]! > max!) last -= 1;
    for (first -= 1; first >= 0 && !has(first); first -= 1);
    for (last += 1; last < all.length && !has(last); last += 1);
    return { values, first: Math.max(0, first), last: Math.min(last, all.length - 1) };
  };
  const across = (at: number) => plot.valToPos(all[at]!, "x", true) / unit;
  const up = (value: number) => Math.max(-FAR, Math.min(FAR, plot.valToPos(value, "y", true) / unit));
  // Stretches without a hole.
  const stretches = (which: number): { at: number; value: number }[][] => {
    const { values, first, last } = column(which);
    const out: { at: number; value: number }[][] = [[]];
    for (let at = first; at <= last; at += 1) {
      const value = values[at];
      if (value === null) out.push([]);
      else if (value !== undefined) out[out.length - 1]!.push({ at, value });
    }
    return out.filter((one) => one.length > 0);
  };
  lines.forEach((line, which) => {
    const colour = colour_of(line.colour ?? which);
    pen.save();
    pen.group(line.label);
    if (line.low) {
      const highs = new Map(stretches(3 * which + 3).flat().map((one) => [one.at, one.value]));
      pen.fillStyle = `${colour}33`;
      for (const part of stretches(3 * which + 2)) {
        const both = part.filter((one) => highs.has(one.at));
        if (both.length < 2) continue;
        pen.beginPath();
        both.forEach(({ at }, k) => (k === 0 ? pen.moveTo(across(at), up(highs.get(at)!)) : pen.lineTo(across(at), up(highs.get(at)!))));
        for (const { at, value } of both.reverse()) pen.lineTo(across(at), up(value));
        pen.fill();
      }
    }
    pen.globalAlpha = line.faint ? 0.45 : 1;
    pen.lineWidth = line.faint ? 1 : 2;
    pen.setLineDash(line.faint ? [3, 4] : dashes_of(line.colour ?? which));
    pen.strokeStyle = pen.fillStyle = colour;
    const parts = stretches(3 * which + 1);
    pen.beginPath();
    for (const part of parts) part.forEach(({ at, value }, k) => (k === 0 ? pen.moveTo(across(at), up(value)) : pen.lineTo(across(at), up(value))));
    if (parts.length > 0) pen.stroke();
    for (const [one] of parts.filter((part) => part.length === 1)) pen.dot(across(one!.at), up(one!.value), 3);
    pen.restore();
  });
}

function draw_axes(pen: SvgPen, plot: uPlot): void {
  const unit = devicePixelRatio;
  const [left, top, width, height] = [plot.bbox.left / unit, plot.bbox.top / unit, plot.bbox.width / unit, plot.bbox.height / unit];
  pen.font = TEXT;
  pen.lineWidth = 1;
  pen.strokeStyle = css("--line");
  pen.fillStyle = css("--dim");
  (plot.axes as Ticks[]).forEach((axis, which) => {
    const flat = which === 0;
    const low = (flat ? left : top) - 0.5;
    const high = low + (flat ? width : height) + 1;
    pen.save();
    pen.group(flat ? "x axis" : "y axis");
    pen.textAlign = flat ? "center" : "right";
    pen.textBaseline = flat ? "top" : "middle";
    (axis._splits ?? []).forEach((value, at) => {
      const place = value === null ? NaN : plot.valToPos(value, flat ? "x" : "y", true) / unit;
      if (!(place >= low && place <= high)) return;
      pen.beginPath();
      pen.moveTo(flat ? place : left - 6, flat ? top : place);
      pen.lineTo(flat ? place : left + width, flat ? top + height + 6 : place);
      pen.stroke();
      const text = axis._values?.[at];
      if (text) pen.fillText(text, flat ? place : left - 10, flat ? top + height + 10 : place);
    });
    pen.restore();
  });
}

function chart_body(pen: SvgPen, chart: ReturnType<Chart["drawn"]>): void {
  const { plot } = chart;
  const unit = devicePixelRatio;
  draw_axes(pen, plot);
  pen.save();
  pen.clip_to(plot.bbox.left / unit, plot.bbox.top / unit - 3, plot.bbox.width / unit, plot.bbox.height / unit + 6);
  draw_lines(pen, chart);
  pen.restore();
  // Marks and all else that the chart draws by itself, in pixels of its canvas.
  pen.save();
  pen.scale(1 / unit);
  pen.canvas = plot.ctx.canvas;
  pen.group("marks");
  chart.over(Object.create(plot, { ctx: { value: pen } }) as uPlot);
  pen.restore();
}

// The legend of a heat map as it stands in the page: words before and behind the sign of a colour.
function keys_of(pen: SvgPen, figure: Element, ramp: HTMLCanvasElement): Key[] {
  return [...figure.querySelectorAll<HTMLElement>(".legend > span")].map((key) => {
    const sign = key.querySelector("i")!;
    const words = (node: ChildNode | null) => node?.textContent?.trim() ?? "";
    let before = "";
    for (let node = sign.previousSibling; node; node = node.previousSibling) before = `${words(node)} ${before}`.trim();
    const behind = [...key.childNodes].slice([...key.childNodes].indexOf(sign) + 1).map(words).filter(Boolean).join(" ");
    const is_ramp = sign.classList.contains("ramp");
    pen.font = TEXT;
    const lead = before ? pen.measureText(before).width + 6 : 0;
    const wide = is_ramp ? 120 : 16;
    return { text: behind, wide: lead + wide, draw: (x, y) => {
      pen.fillStyle = css("--text");
      if (before) pen.fillText(before, x, y);
      if (is_ramp) { pen.drawImage(ramp, x + lead, y - 12, wide, 14); return; }
      const pattern = sign.classList.contains("hatch") ? hatch(1) : sign.classList.contains("checker") ? checker(1) : null;
      if (!pattern) { pen.fillStyle = getComputedStyle(sign).backgroundColor; pen.fillRect(x, y - 12, 16, 14); return; }
      const box = canvas_of(16, 14);
      const on = box.getContext("2d")!;
      on.fillStyle = on.createPattern(pattern, "repeat")!;
      on.fillRect(0, 0, 16, 14);
      pen.drawImage(box, x, y - 12);
    } };
  });
}

// Title, legend, the chart with its axes, and its marks in words.
export function picture_of(shown: Chart | HeatCanvas, words: PictureWords, figure: Element): { svg: string; width: number; height: number; name: string } | null {
  const pen = new SvgPen();
  const chart = shown instanceof Chart ? shown.drawn() : null;
  const heat = shown instanceof Chart ? null : shown.drawn();
  if (!chart && !heat) return null;
  const unit = devicePixelRatio;
  const wide = chart ? chart.plot.width : heat!.width;
  const high = chart ? chart.plot.height : heat!.height;
  const time = chart ? chart.time : heat!.heat.time === true;
  const x_scale = chart?.plot.scales.x;
  const range = chart ? range_of(x_scale!.min!, x_scale!.max!, time, words.x) : range_of(heat!.heat.from, heat!.heat.to - (time ? 0 : 1), time, words.x);
  const name = file_name([shown_run.job, words.title, range.file]);
  const title = [shown_run.job, words.title].filter(Boolean).join(": ");
  let y = EDGE + 14;
  pen.font = "bold 15px system-ui, sans-serif";
  pen.fillStyle = css("--text");
  y = write(pen, title, EDGE, y, wide);
  pen.font = TEXT;
  pen.fillStyle = css("--dim");
  y = write(pen, [shown_run.uid && `run ${shown_run.uid}`, range.words].filter(Boolean).join(", "), EDGE, y, wide);
  const keys: Key[] = chart ? chart.lines.map((line, which) => ({ text: line.label, wide: 28, draw: (x, at) => {
    pen.strokeStyle = colour_of(line.colour ?? which);
    pen.lineWidth = 3;
    pen.globalAlpha = line.faint ? 0.45 : 1;
    pen.setLineDash(line.faint ? [3, 4] : dashes_of(line.colour ?? which));
    pen.beginPath();
    pen.moveTo(x, at - 4);
    pen.lineTo(x + 28, at - 4);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.setLineDash([]);
  } })) : keys_of(pen, figure, heat!.ramp);
  y = write_keys(pen, keys, y, wide);
  pen.font = TEXT;
  pen.fillStyle = css("--dim");
  if (words.y) y = write(pen, words.y, EDGE, y, wide);
  y -= LINE - 6;
  pen.save();
  pen.translate(EDGE, y);
  if (chart) chart_body(pen, chart);
  else { pen.group("cells"); heat!.paint(pen as unknown as CanvasRenderingContext2D); }
  pen.restore();
  const name_at = y + (chart ? (chart.plot.bbox.top + chart.plot.bbox.height) / unit + 40 : high + 14);  // over the band of attempts
  y = Math.max(name_at, y + high - 4);
  pen.font = TEXT;
  pen.fillStyle = css("--dim");
  pen.textAlign = "center";
  const left = chart ? chart.plot.bbox.left / unit : heat!.left;
  const across = chart ? chart.plot.bbox.width / unit : wide - heat!.left;
  pen.fillText(words.x === "time" ? `time, ${zone.value}` : words.x, EDGE + left + across / 2, name_at);
  pen.textAlign = "left";
  y += LINE + 4;
  const [from, to] = chart ? [x_scale!.min!, x_scale!.max!] : [heat!.heat.from, heat!.heat.to];
  y = write_marks(pen, (chart ?? heat!).marks.filter((mark) => mark.x >= from && mark.x <= to), y, wide);
  const [width, height] = [Math.ceil(wide + 2 * EDGE), Math.ceil(y - LINE + EDGE)];
  const ground = `<rect width="${width}" height="${height}" fill="${css("--panel")}"/>`;
  return { svg: pen.file(title, width, height, ground), width, height, name };
}

async function png_of(svg: string, width: number, height: number): Promise<Blob> {
  const image = new Image(width * SHARPNESS, height * SHARPNESS);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = canvas_of(width * SHARPNESS, height * SHARPNESS);
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((then, fail) => canvas.toBlob((blob) => (blob ? then(blob) : fail(new Error("the picture is too large for this browser"))), "image/png"));
}

export async function save_picture(shown: Chart | HeatCanvas, words: PictureWords, kind: "png" | "svg", figure: Element): Promise<void> {
  const picture = picture_of(shown, words, figure);
  if (!picture) return;
  const { svg, width, height, name } = picture;
  const file = kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await png_of(svg, width, height);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${name}.${kind}`;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
