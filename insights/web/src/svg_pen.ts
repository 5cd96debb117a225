// A drawing context that writes SVG: what is drawn on a canvas through it becomes lines, shapes and text of a file.

const FONT = "system-ui, sans-serif";
// How far the line of letters lies below the place of a text, in heights of the font.
const BELOW: Record<string, number> = { alphabetic: 0, middle: 0.36, top: 0.86 };

const probe = document.createElement("canvas").getContext("2d")!;

const ILLEGAL = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;  // characters that XML has no place for
export const xml = (text: string) => text.replace(ILLEGAL, "\ufffd").replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[one] ?? "&quot;");
const short = (value: number) => String(Number(value.toFixed(2)));

// "#rrggbbaa" is not read by every program: the last part is written as opacity.
function colour_of(name: "fill" | "stroke", colour: string, alpha: number): string {
  const parts = /^(#[0-9a-f]{6})([0-9a-f]{2})$/i.exec(colour);
  const opacity = alpha * (parts ? parseInt(parts[2]!, 16) / 255 : 1);
  return ` ${name}="${parts ? parts[1] : xml(colour)}"${opacity < 1 ? ` ${name}-opacity="${short(opacity)}"` : ""}`;
}

interface State { fillStyle: string; strokeStyle: string; lineWidth: number; font: string; textAlign: string; textBaseline: string; globalAlpha: number; dash: number[]; k: number; x: number; y: number; open: number }

// The part of CanvasRenderingContext2D that charts and heat maps use. Lengths are CSS pixels; every number written is one of the whole picture.
export class SvgPen {
  fillStyle = "#000"; strokeStyle = "#000"; lineWidth = 1; font = `13px ${FONT}`; textAlign = "left"; textBaseline = "alphabetic"; globalAlpha = 1;
  imageSmoothingEnabled = false;
  canvas = { width: 0, height: 0 };  // what code that draws asks for the size of its canvas
  private dash: number[] = [];
  private k = 1;
  private x = 0;
  private y = 0;
  private open = 0;  // groups to be closed by `restore`
  private clips = 0;
  private path: string[] = [];
  private readonly states: State[] = [];
  private readonly out: string[] = [];

  save(): void {
    const { fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, dash, k, x, y, open } = this;
    this.states.push({ fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, dash, k, x, y, open });
    this.open = 0;
  }
  restore(): void {
    this.out.push("</g>".repeat(this.open));
    Object.assign(this, this.states.pop());
  }
  // Until `restore`: all that is drawn is one thing of this name, which is shown when the pointer rests on it.
  group(title: string): void { this.out.push(`<g><title>${xml(title)}</title>`); this.open += 1; }
  // Until `restore`: nothing outside is seen.
  clip_to(x: number, y: number, width: number, height: number): void {
    const id = `clip${this.clips += 1}`;
    this.out.push(`<clipPath id="${id}"><rect${this.box(x, y, width, height)}/></clipPath><g clip-path="url(#${id})">`);
    this.open += 1;
  }
  translate(x: number, y: number): void { this.x += x * this.k; this.y += y * this.k; }
  scale(by: number): void { this.k *= by; }
  setLineDash(dash: number[]): void { this.dash = dash; }

  beginPath(): void { this.path = []; }
  moveTo(x: number, y: number): void { this.path.push(`M${this.place(x, y)}`); }
  lineTo(x: number, y: number): void { this.path.push(`L${this.place(x, y)}`); }
  stroke(): void { this.out.push(`<path d="${this.path.join("")}" fill="none"${this.stroked()}/>`); }
  fill(): void { this.out.push(`<path d="${this.path.join("")}Z"${this.filled()}/>`); }
  dot(x: number, y: number, radius: number): void {
    this.out.push(`<circle cx="${short(x * this.k + this.x)}" cy="${short(y * this.k + this.y)}" r="${short(radius * this.k)}"${this.filled()}/>`);
  }
  fillRect(x: number, y: number, width: number, height: number): void { this.out.push(`<rect${this.box(x, y, width, height)}${this.filled()}/>`); }
  strokeRect(x: number, y: number, width: number, height: number): void { this.out.push(`<rect${this.box(x, y, width, height)} fill="none"${this.stroked()}/>`); }

  measureText(text: string): TextMetrics { probe.font = this.font; return probe.measureText(text); }
  fillText(text: string, x: number, y: number): void {
    const size = parseFloat(/([\d.]+)px/.exec(this.font)?.[1] ?? "13");
    const at = this.place(x, y + size * (BELOW[this.textBaseline] ?? 0)).split(" ");
    const anchor = { center: "middle", right: "end" }[this.textAlign];
    this.out.push(`<text x="${at[0]}" y="${at[1]}" font-size="${short(size * this.k)}"${this.font.startsWith("bold") ? ' font-weight="bold"' : ""}${anchor ? ` text-anchor="${anchor}"` : ""}${this.filled()}>${xml(text)}</text>`);
  }
  // Pixels stay pixels, however large they are drawn.
  drawImage(image: HTMLCanvasElement, x: number, y: number, width = image.width, height = image.height): void {
    this.out.push(`<image${this.box(x, y, width, height)} preserveAspectRatio="none" image-rendering="pixelated" href="${image.toDataURL("image/png")}"/>`);
  }

  file(title: string, width: number, height: number, ground: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="${FONT}"><title>${xml(title)}</title>${ground}${this.out.join("")}</svg>\n`;
  }

  private place(x: number, y: number): string { return `${short(x * this.k + this.x)} ${short(y * this.k + this.y)}`; }
  private box(x: number, y: number, width: number, height: number): string {
    return ` x="${short(x * this.k + this.x)}" y="${short(y * this.k + this.y)}" width="${short(width * this.k)}" height="${short(height * this.k)}"`;
  }
  private filled(): string { return colour_of("fill", this.fillStyle, this.globalAlpha); }
  private stroked(): string {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.map((one) => short(one * this.k)).join(" ")}"` : "";
    return `${colour_of("stroke", this.strokeStyle, this.globalAlpha)} stroke-width="${short(this.lineWidth * this.k)}"${dash}`;
  }
}
