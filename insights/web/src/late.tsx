// How late each rank ended each step: a row for each rank, a column for each step.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Mark } from "./marks";
import { SavePicture } from "./save_picture";
import { HeatCanvas } from "./heat";
import { heat_press, speaks } from "./heat_keys";
import { HIGHEST, NOTHING, type Heat } from "./heat_data";
import { seconds_words } from "./phase_colours";

interface LateRank { rank: number; worker: string; late: (number | null)[] }
const NONE: Mark[] = [];
const TALL = 384;

function heat_of(ranks: LateRank[], from: number, most: number): Heat {
  const columns = ranks[0]!.late.length;
  const cells = new Uint8Array(ranks.length * columns).fill(NOTHING);
  ranks.forEach((rank, row) => rank.late.forEach((late, at) => { if (late !== null) cells[row * columns + at] = Math.round(most > 0 ? late / most * HIGHEST : 0); }));
  return { stat: "late", mode: "train", modes: [], width: 1, from, to: from + columns, tensors: ranks.length, left_out: 0, refused: 0, tensors_gone: false, restarts: [], scale: "linear", lo: 0, hi: most, columns, cells,
    rows: ranks.map((rank) => ({ label: `rank ${rank.rank}`, name: rank.worker, last: rank.worker, folded: 1, role: "", first_bad_step: null })) };
}

export function LateFigure({ ranks, from }: { ranks: LateRank[]; from: number }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HeatCanvas | null>(null);
  const [at, set_at] = useState<[number, number] | null>(null);
  const most = useMemo(() => Math.max(0, ...ranks.flatMap((rank) => rank.late.map((late) => late ?? 0))), [ranks]);
  const heat = useMemo(() => heat_of(ranks, from, most), [ranks, from]);
  useEffect(() => {
    const made = new HeatCanvas(box.current!, { point: (row, column) => set_at([row, column]), choose: () => undefined }, TALL);
    canvas.current = made;
    return () => made.leave();
  }, []);
  useEffect(() => { canvas.current?.show(heat, NONE, null); }, [heat]);
  const late = at && ranks[at[0]]?.late[at[1]];
  return (
    <figure class="heat">
      <SavePicture of={canvas} title="Lateness of ranks" x="step" />
      <p class="read" aria-live={speaks(box.current)}>{at && ranks[at[0]] ? `step ${from + at[1]}, rank ${ranks[at[0]]!.rank}: ${late == null ? "not ended by all ranks" : `${seconds_words(late)} late`}` : " "}</p>
      <div class="cells" ref={box} tabIndex={0} role="img" onKeyDown={(event) => heat_press(event, canvas.current)} aria-label={`Lateness of ${ranks.length} ranks, at most ${seconds_words(most)}. Arrow keys read cells.`} />
      <p class="legend"><span>0 s <i class="ramp" /> {seconds_words(most)}</span><span><i class="checker" /> not ended by all ranks</span></p>
    </figure>
  );
}
