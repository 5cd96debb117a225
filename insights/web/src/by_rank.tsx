// One number of every rank over the steps: which rank differs, and from which step on?
import { useMemo } from "preact/hooks";
import { Refused } from "./api";
import { short } from "./chart";
import { useAsked } from "./curves";
import { exactly, type Name } from "./curve_data";
import { ask_heat, HIGHEST, NOT_FINITE, steps_of, value_of, type Heat, type HeatRow } from "./heat_data";
import { HeatFigure } from "./heat_figure";
import { restart_marks } from "./attempts";
import { place, set_queries, set_query } from "./place";

const STATS = ["l2", "mean", "std", "min", "max", "abs_max", "abs_mean", "zero", "negative", "nan", "posinf", "neginf"];
const USUAL = "step_seconds";
const TALL = 384;
const MOST_TENSORS = 200;
type RankRow = HeatRow & { rank: number };
type RankHeat = Heat & { ranks: number };

const asked = (name: string) => place.value.query.get(name) ?? "";

function named(heat: Heat, stat: string): RankHeat {
  const rows = (heat.rows as RankRow[]).map((row) => ({ ...row, label: row.folded > 1 ? `${row.name} to ${row.last} (${row.folded} ranks, the greatest)` : `rank ${row.rank}` }));
  return { ...(heat as RankHeat), rows, stat };
}

function rank_sentence(heat: RankHeat): string {
  const bad = heat.rows.filter((row) => row.first_bad_step !== null).sort((a, b) => a.first_bad_step! - b.first_bad_step!);
  let most = -1;
  heat.cells.forEach((cell, at) => { if (cell <= HIGHEST && (most < 0 || cell > heat.cells[most]!)) most = at; });
  const span = heat.lo === null ? "" : `; from ${short(value_of(heat, 0))} to ${short(value_of(heat, HIGHEST))}`;
  const where = most < 0 || heat.hi === heat.lo ? "" : ` The greatest: ${heat.rows[Math.floor(most / heat.columns)]!.label}, ${steps_of(heat, most % heat.columns)}.`;
  const wrong = bad[0] ? ` Not finite first at step ${bad[0].first_bad_step}: ${bad[0].label}.` : heat.cells.includes(NOT_FINITE) ? " Some values are not finite." : "";
  return `${heat.stat} of ${heat.ranks} ${heat.ranks === 1 ? "rank" : "ranks"}, steps ${heat.from} to ${heat.to - 1}${span}.${where}${wrong} 1 column = ${heat.width === 1 ? "1 step" : `${heat.width} steps, the greatest of them`}.`;
}

export function ByRankPanel({ uid, turn }: { uid: string; turn: number }) {
  const run = `/runs/${encodeURIComponent(uid)}`;
  const scalars = useAsked<{ items: Name[] }>(`${run}/names?limit=1000`, turn);
  const tensors = useAsked<{ items: Name[]; total: number }>(`${run}/names?kind=tensor&sort=worst&limit=${MOST_TENSORS}`, turn);
  const numbers = (scalars.answer?.items ?? []).map((one) => one.name);
  const measured = (tensors.answer?.items ?? []).map((one) => one.name);
  const of = asked("of") || (numbers.length === 0 || numbers.includes(USUAL) ? USUAL : numbers[0]!);
  const tensor = !numbers.includes(of) && measured.includes(of);
  const stat = STATS.includes(asked("stat")) ? asked("stat") : "l2";
  const log = asked("scale") === "log10";
  const known = numbers.includes(of) || tensor;
  const path = `${run}/heatmap?by=rank&format=bin&cols=400&name=${encodeURIComponent(exactly([of]))}&scale=${log ? "log10" : "linear"}${tensor ? `&stat=${stat}` : ""}`;
  const { answer, error } = useAsked<Heat>(known ? path : null, turn, ask_heat);
  const words = tensor ? `${stat} of ${of}` : of;
  const heat = useMemo(() => answer && named(answer, words), [answer]);
  if (error instanceof Refused && error.status === 401) return null;
  return (
    <section class="panel" id="by-rank"><h2>One number of every rank</h2>
      <p class="tools">
        <label>Number <select value={of} onChange={(event) => set_query("of", event.currentTarget.value === USUAL ? "" : event.currentTarget.value)}>
          {!known && <option value={of}>{of}</option>}
          {numbers.length > 0 && <optgroup label="logged">{numbers.map((one) => <option key={one} value={one}>{one}</option>)}</optgroup>}
          {measured.length > 0 && <optgroup label={tensors.answer!.total > measured.length ? `tensors, the worst ${measured.length} of ${tensors.answer!.total}` : "tensors"}>{measured.map((one) => <option key={one} value={one}>{one}</option>)}</optgroup>}
        </select></label>
        {tensor && <label>Statistic <select value={stat} onChange={(event) => set_queries({ stat: event.currentTarget.value })}>{STATS.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>}
        <button type="button" aria-pressed={log} onClick={() => set_query("scale", log ? "" : "log10")}>Logarithmic</button></p>
      {error && <p class="fault" role="alert">{error.message}</p>}
      {scalars.answer && tensors.answer && !known && <p class="dim">The run has not logged {of}.</p>}
      {heat && heat.rows.length > 0 && <HeatFigure title={`${words} of every rank`} heat={heat} marks={restart_marks(heat.restarts, heat.mode ?? "train", uid)} selected={null} most={TALL} said={rank_sentence(heat)} />}
      {heat && heat.rows.length === 0 && <p class="dim">It has no values yet.</p>}
      {heat && heat.rows.length === 1 && heat.ranks === 1 && <p class="dim">The run has one rank: there is nothing to compare it with.</p>}
    </section>
  );
}
