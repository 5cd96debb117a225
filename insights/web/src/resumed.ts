// A run that was resumed: the line goes on in the newer attempt.
import type { Curve } from "./curve_data";

type Column = (number | null)[];
const later = (a: Curve, b: Curve) => (a.x0[0] ?? 0) - (b.x0[0] ?? 0);
const same_line = (curve: Curve) => `${curve.name} ${curve.mode} ${curve.worker ?? ""}`;

// Pieces of one worker, by where they begin; what a later attempt replaced is none of them.
function pieces_of(curves: Curve[]): Curve[][] {
  const out = new Map<string, Curve[]>();
  for (const one of curves.filter((some) => !some.superseded)) out.set(same_line(one), [...(out.get(same_line(one)) ?? []), one]);
  return [...out.values()].map((all) => all.sort(later));
}

function put_together(pieces: Curve[]): Curve {
  const first = pieces[0]!;
  if (pieces.length === 1) return first;
  const column = <T,>(of: (one: Curve) => T[] | undefined): T[] | undefined => (of(first) ? pieces.flatMap((one) => of(one) ?? []) : undefined);
  const begin = pieces.find((one) => one.t0)?.t0 ?? null;
  const times: Column = pieces.flatMap((one) => {
    const shift = begin && one.t0 ? Date.parse(one.t0) - Date.parse(begin) : 0;
    return one.x0.map((_, at) => { const dt = one.dt[at]; return dt == null ? null : dt + shift; });
  });
  const starts = pieces.map((_, which) => pieces.slice(0, which).reduce((sum, one) => sum + one.x0.length, 0));
  const out: Curve = { ...first, attempt: pieces[pieces.length - 1]!.attempt, stored: pieces.reduce((sum, one) => sum + one.stored, 0), repeats: pieces.reduce((sum, one) => sum + one.repeats, 0),
    x0: pieces.flatMap((one) => one.x0), t0: begin, dt: times,
    bad: pieces.flatMap((one, which) => one.bad.map((row) => [row[0]! + starts[which]!, ...row.slice(1)])) };
  const value = column((one) => one.value);
  const [n, min, max, mean] = [column((one) => one.n), column((one) => one.min), column((one) => one.max), column((one) => one.mean)];
  return { ...out, ...(value ? { value } : {}), ...(n ? { n } : {}), ...(min ? { min } : {}), ...(max ? { max } : {}), ...(mean ? { mean } : {}) };
}

// One line for each worker, then what was replaced. A bucket that both pieces share stays in both: two points at one x.
export function joined(curves: Curve[]): Curve[] {
  return [...pieces_of(curves).map(put_together), ...curves.filter((one) => one.superseded)];
}
