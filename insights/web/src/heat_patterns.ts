// What a heat map shows where there is no number: patterns to fill with.
export const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function canvas_of(width: number, height: number): HTMLCanvasElement {
  const out = document.createElement("canvas");
  out.width = Math.max(1, width);
  out.height = Math.max(1, height);
  return out;
}

export function hatch(unit: number): HTMLCanvasElement {
  const out = canvas_of(6 * unit, 6 * unit);
  const ctx = out.getContext("2d")!;
  ctx.fillStyle = "#d3242b";
  ctx.fillRect(0, 0, out.width, out.height);
  ctx.strokeStyle = "#fff";
  ctx.lineWidth = 1.2 * unit;
  ctx.beginPath();
  for (const by of [-6, 0, 6]) { ctx.moveTo((by - 1) * unit, 7 * unit); ctx.lineTo((by + 7) * unit, -1 * unit); }
  ctx.stroke();
  return out;
}
export function checker(unit: number): HTMLCanvasElement {
  const out = canvas_of(8 * unit, 8 * unit);
  const ctx = out.getContext("2d")!;
  ctx.fillStyle = css("--panel");
  ctx.fillRect(0, 0, out.width, out.height);
  ctx.fillStyle = css("--line");
  ctx.fillRect(0, 0, 4 * unit, 4 * unit);
  ctx.fillRect(4 * unit, 4 * unit, 4 * unit, 4 * unit);
  return out;
}
