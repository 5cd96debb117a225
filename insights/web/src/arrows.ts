// Arrows at the edge of a chart, for values beyond it.

// The last arrow that stands close to the one at `place`, towards `side`: a value is written beside them, not over them.
export function beside_arrows(far: { place: number }[], place: number, side: number, near: number): number {
  let out = place;
  for (const one of [...far].sort((a, b) => side * (a.place - b.place)))
    if (side * (one.place - out) > 0 && side * (one.place - out) < near) out = one.place;
  return out;
}
