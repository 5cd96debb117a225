// A heat map as the server sends it (one byte per cell), and in words what it shows.
import { Refused } from "./api";
import { short } from "./chart";
import type { Restart } from "./curve_data";
import { then_path } from "./past";
import { after_pause } from "./paused";

export interface HeatRow { label?: string; name: string; last: string; folded: number; role: string; first_bad_step: number | null }
export interface Heat {
  stat: string; mode: string | null; modes: string[]; width: number; from: number; to: number; tensors: number; left_out: number;
  refused: number; tensors_gone: boolean; restarts: Restart[]; rows: HeatRow[]; scale: "log10" | "linear"; lo: number | null; hi: number | null;
  columns: number; cells: Uint8Array;
  bins?: { at: number; text: string }[];  // rows are bins of values, and these are marks of their axis, in rows from above
  time?: boolean;  // columns are milliseconds, UTC, and values are shares, of which the high ones are dark
}
export const HIGHEST = 252;
export const NOT_POSITIVE = 253;
export const NOT_FINITE = 254;
export const NOTHING = 255;

const MAGIC = "TOCSCOL1";
const HEAD = 16;

export async function ask_heat(path: string): Promise<Heat> {
  const answer = await after_pause(fetch(`/api/v1${then_path(path)}`));
  if (!answer.ok) {
    const body = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, body.detail ?? `the server answered ${answer.status}`);
  }
  return heat_of(await answer.arrayBuffer());
}

export function heat_of(bytes: ArrayBuffer): Heat {
  const text = new TextDecoder();
  if (text.decode(bytes.slice(0, MAGIC.length)) !== MAGIC) throw new Error("the server sent something that is no heat map");
  const size = new DataView(bytes).getUint32(MAGIC.length, true);
  const head = JSON.parse(text.decode(bytes.slice(HEAD, HEAD + size)));
  const [array] = head.arrays;
  const columns = (head.to - head.from) / head.width;
  return { ...head, columns, cells: held(new Uint8Array(bytes, HEAD + size + array.at, array.count), head.rows.length, columns) };
}

// A tensor is measured every so many steps: until the next time it is drawn as it was. Longer holes stay.
function held(cells: Uint8Array, rows: number, columns: number): Uint8Array {
  const out = Uint8Array.from(cells);
  for (let row = 0; row < rows; row += 1) {
    const at: number[] = [];
    for (let column = 0; column < columns; column += 1) if (cells[row * columns + column] !== NOTHING) at.push(column);
    const gaps = at.slice(1).map((one, which) => one - at[which]!).sort((a, b) => a - b);
    const most = 2 * (gaps[gaps.length >> 1] ?? 1);
    for (let which = 0; which + 1 < at.length; which += 1)
      if (at[which + 1]! - at[which]! <= most) out.fill(cells[row * columns + at[which]!]!, row * columns + at[which]! + 1, row * columns + at[which + 1]!);
  }
  return out;
}

export const value_of = (heat: Heat, cell: number) => {
  const place = heat.lo! + (heat.hi! - heat.lo!) * cell / HIGHEST;
  return heat.scale === "log10" ? 10 ** place : place;
};

export function cell_words(heat: Heat, row: number, column: number): string {
  const cell = heat.cells[row * heat.columns + column];
  if (cell === undefined || cell === NOTHING) return "no value";
  if (cell === NOT_FINITE) return "not finite";
  if (cell === NOT_POSITIVE) return "0 or below";
  return `about ${Number(value_of(heat, cell).toPrecision(2)).toString().replace("e+", "e")}`;
}

export const row_words = (row: HeatRow) => row.label ?? (row.folded > 1 ? `${row.name} to ${row.last} (${row.folded} tensors, the greatest)` : row.name);

export const steps_of = (heat: Heat, column: number) => {
  const first = heat.from + column * heat.width;
  return heat.width === 1 ? `step ${first}` : `steps ${first} to ${first + heat.width - 1}`;
};

export function heat_sentence(heat: Heat): string {
  const bad = heat.rows.filter((row) => row.first_bad_step !== null).sort((a, b) => a.first_bad_step! - b.first_bad_step!);
  const span = heat.lo === null ? "" : `; ${heat.stat} from ${short(value_of(heat, 0))} to ${short(value_of(heat, HIGHEST))}`;
  const rows = heat.rows.length < heat.tensors - heat.left_out ? ` in ${heat.rows.length} rows` : "";
  return `${heat.tensors} ${heat.tensors === 1 ? "tensor" : "tensors"}${rows}, steps ${heat.from} to ${heat.to - 1}${span}. ` +
    (bad.length === 0 ? "All values are finite." : `Not finite first at step ${bad[0]!.first_bad_step}: ${row_words(bad[0]!)}${bad.length > 1 ? `, then ${bad.length - 1} more ${bad.length === 2 ? "row" : "rows"}` : ""}.`) +
    ` 1 column = ${heat.width === 1 ? "1 step" : `${heat.width} steps, the greatest of them`}.`;
}
