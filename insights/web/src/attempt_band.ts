// The band under a chart that says which attempt a stretch of it belongs to.
import type uPlot from "uplot";
import type { Stretch } from "./attempts";

export const BAND = 16;  // CSS pixels under the axis
const LEAST = 3;         // CSS pixels: a narrower stretch is drawn so wide

// Neighbours differ in their shade; the name stands in a stretch that has room for it, else its number does.
export function draw_band(plot: uPlot, stretches: Stretch[], text_colour: string, shades: [string, string]): void {
  const { ctx } = plot;
  const { left, width } = plot.bbox;
  const unit = devicePixelRatio;
  const { min, max } = plot.scales.x!;
  if (stretches.length === 0 || min == null || max == null) return;
  const high = (BAND - 2) * unit;
  const top = ctx.canvas.height - high;
  ctx.save();
  ctx.font = `${12 * unit}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  stretches.forEach(({ from, to, text }, which) => {
    if (to <= min || from > max) return;
    const begin = from <= min ? left : plot.valToPos(from, "x", true);
    const end = Math.max(begin + LEAST * unit, to >= max ? left + width : plot.valToPos(to, "x", true) - unit);
    ctx.fillStyle = shades[which % 2]!;
    ctx.fillRect(begin, top, end - begin, high);
    ctx.fillStyle = text_colour;
    const said = [text, text.replace(/^attempt /, "")].find((one) => ctx.measureText(one).width + 6 * unit <= end - begin);
    if (said) ctx.fillText(said, (begin + end) / 2, top + high / 2);
  });
  ctx.restore();
}
