// Histograms of a tensor as the server sends them, as a picture of value × step and in words.
import { short } from "./chart";
import { HIGHEST, NOT_FINITE, NOT_POSITIVE, NOTHING, type Heat } from "./heat_data";

interface Bin { sign: 1 | -1; bucket: number; above: number; up_to: number; counts: number[] }
export interface Histogram {
  mode: string | null; modes: string[]; width: number; from: number; to: number; tensors: number; left_out: number; thinned: boolean; histograms_gone: boolean;
  scale: number; rows: Bin[]; histograms: number[]; elements: number[]; positive: number[]; zero: number[]; negative: number[]; nan: number[]; pos_inf: number[]; neg_inf: number[];
}
const MOST_MARKS = 6;  // of the axis, of each sign

// A histogram is drawn until the next one, as long as that is not far: the column that each column shows, or -1.
export function sources_of(one: Histogram): number[] {
  const at = one.histograms.flatMap((count, column) => (count > 0 ? [column] : []));
  const gaps = at.slice(1).map((column, which) => column - at[which]!).sort((a, b) => a - b);
  const most = 2 * (gaps[gaps.length >> 1] ?? 1);
  const out = one.histograms.map((count, column) => (count > 0 ? column : -1));
  for (let which = 0; which + 1 < at.length; which += 1)
    if (at[which + 1]! - at[which]! <= most) out.fill(at[which]!, at[which]! + 1, at[which + 1]!);
  return out;
}

const bad_in = (one: Histogram, column: number) => one.nan[column]! + one.pos_inf[column]! + one.neg_inf[column]!;
const positive_rows = (one: Histogram) => one.rows.filter((bin) => bin.sign === 1).length;

// Counts of the rows of the picture: positive bins from above, 0, negative bins downwards.
export function counts_of(one: Histogram): number[][] {
  const above = positive_rows(one);
  return [...one.rows.slice(0, above).map((bin) => bin.counts), one.zero, ...one.rows.slice(above).map((bin) => bin.counts)];
}

function marks_of_axis(one: Histogram): { at: number; text: string }[] {
  const above = positive_rows(one);
  const out = [{ at: above + 0.5, text: "0" }];
  if (one.rows.length === 0) return out;
  const buckets = one.rows.map((bin) => bin.bucket);
  const first = Math.min(...buckets);
  const end = Math.max(...buckets) + 1;
  const per_octave = 2 ** one.scale;
  const place = (power: number) => power * Math.log2(10) * per_octave - first;
  const low = Math.ceil(first / per_octave / Math.log2(10));
  const high = Math.floor(end / per_octave / Math.log2(10));
  const stride = Math.max(1, Math.ceil((high - low + 1) / MOST_MARKS));
  for (let power = high; power >= low; power -= stride) {
    if (above > 0) out.push({ at: end - first - place(power), text: `1e${power}` });
    if (above < one.rows.length) out.push({ at: above + 1 + place(power), text: `−1e${power}` });
  }
  return out.sort((a, b) => a.at - b.at);
}

export function picture_of(one: Histogram, name: string): Heat {
  const sources = sources_of(one);
  const counts = counts_of(one);
  const columns = sources.length;
  const share = (row: number, column: number) => counts[row]![column]! / Math.max(1, one.elements[column]!);
  let lo = Infinity;
  let hi = -Infinity;
  counts.forEach((row, at) => row.forEach((count, column) => {
    if (count === 0) return;
    lo = Math.min(lo, Math.log10(share(at, column)));
    hi = Math.max(hi, Math.log10(share(at, column)));
  }));
  const cells = new Uint8Array(counts.length * columns).fill(NOTHING);
  counts.forEach((row, at) => sources.forEach((source, column) => {
    if (source < 0) return;
    const some = row[source]! > 0;
    cells[at * columns + column] = some ? Math.round((hi > lo ? (Math.log10(share(at, source)) - lo) / (hi - lo) : 1) * HIGHEST) : bad_in(one, source) > 0 ? NOT_FINITE : NOT_POSITIVE;
  }));
  return { stat: "share", mode: one.mode, modes: one.modes, width: one.width, from: one.from, to: one.to, tensors: 1, left_out: 0, refused: 0, tensors_gone: false, restarts: [], scale: "log10",
    lo: Number.isFinite(lo) ? lo : null, hi: Number.isFinite(hi) ? hi : null, columns, cells, bins: marks_of_axis(one),
    rows: counts.map(() => ({ name, last: name, folded: 1, role: "", first_bad_step: null })) };
}

export const percent = (share: number) => (share === 0 ? "0 %" : share < 0.001 ? "under 0.1 %" : `${Number((share * 100).toPrecision(2))} %`);

function bin_words(one: Histogram, row: number): string {
  const above = positive_rows(one);
  if (row === above) return "are 0";
  const bin = one.rows[row < above ? row : row - 1]!;
  return bin.sign > 0 ? `are above ${short(bin.above)}, up to ${short(bin.up_to)}` : `are below −${short(bin.above)}, down to −${short(bin.up_to)}`;
}

export function bad_words(one: Histogram, column: number): string {
  return ([[one.nan, "NaN"], [one.pos_inf, "+Inf"], [one.neg_inf, "−Inf"]] as const).flatMap(([counts, word]) => (counts[column]! > 0 ? [`${counts[column]} ${word}`] : [])).join(", ");
}

const step_words = (one: Histogram, column: number) => {
  const first = one.from + column * one.width;
  return one.width === 1 ? `step ${first}` : `steps ${first} to ${first + one.width - 1}`;
};

export function histogram_read(one: Histogram, row: number, column: number): string {
  const source = sources_of(one)[column] ?? -1;
  if (source < 0) return `${step_words(one, column)}: no histogram`;
  const share = counts_of(one)[row]![source]! / Math.max(1, one.elements[source]!);
  const bad = bad_words(one, source);
  return `${step_words(one, column)}: ${percent(share)} of the elements ${bin_words(one, row)}${bad ? ` · ${bad}` : ""}${source === column ? "" : ` · of ${step_words(one, source)}`}`;
}

// Between which magnitudes the middle half of the elements of a column lies that are neither 0 nor without a number.
function middle_half(one: Histogram, column: number): [number, number] | null {
  const sizes = new Map<number, { above: number; up_to: number; count: number }>();
  for (const bin of one.rows) {
    const kept = sizes.get(bin.bucket) ?? { above: bin.above, up_to: bin.up_to, count: 0 };
    kept.count += bin.counts[column]!;
    sizes.set(bin.bucket, kept);
  }
  const all = [...sizes.entries()].sort((a, b) => a[0] - b[0]).map((entry) => entry[1]);
  const total = all.reduce((sum, bin) => sum + bin.count, 0);
  if (total === 0) return null;
  const at = (share: number) => { let seen = 0; return all.find((bin) => { seen += bin.count; return seen >= share * total; })!; };
  return [at(0.25).above, at(0.75).up_to];
}

export function histogram_sentence(one: Histogram, name: string): string {
  const there = one.histograms.flatMap((count, column) => (count > 0 ? [column] : []));
  const newest = there[there.length - 1];
  if (newest === undefined) return `${name}: no histogram in these steps.`;
  const total = one.histograms.reduce((sum, count) => sum + count, 0);
  const all = Math.max(1, one.elements[newest]!);
  const half = middle_half(one, newest);
  const wrong = there.find((column) => bad_in(one, column) > 0);
  return `${name}: ${total} ${total === 1 ? "histogram" : "histograms"}, steps ${one.from} to ${one.to - 1}. At ${step_words(one, newest)} ${percent(one.negative[newest]! / all)} are negative, ${percent(one.zero[newest]! / all)} zero, ${percent(one.positive[newest]! / all)} positive` +
    `${half ? `; the middle half has magnitudes from ${short(half[0])} to ${short(half[1])}` : ""}. ${wrong === undefined ? "All elements are finite." : `Not finite first at ${step_words(one, wrong)}: ${bad_words(one, wrong)}.`}`;
}
