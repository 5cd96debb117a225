// All cores and GPUs of a node over time: which are idle, which are full, since when.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Happened, Mark } from "./marks";
import { clock, clock_words } from "./clock";
import { useAsked } from "./curves";
import { SavePicture } from "./save_picture";
import { HeatCanvas } from "./heat";
import { heat_press, speaks } from "./heat_keys";
import { ask_heat, HIGHEST, NOTHING, type Heat } from "./heat_data";
import { useMarks } from "./marks_list";
import { useSlow } from "./slow";
import { label_of } from "./system_data";
import { turn_of } from "./stream";
import { time_marks } from "./time_marks";

const TALL = 420;
type CoreRow = Heat["rows"][number] & { metric: string; labels: string; node: string };

// Rows that fit the filter, with their names as people know them; bytes are shares of the whole scale from 0 to 1.
function shown_of(heat: Heat, gpus: string[], filter: RegExp | null): Heat {
  const rows = (heat.rows as CoreRow[]).map((row, at) => ({ ...row, at, first_bad_step: null, label: label_of(row.metric, row.labels, gpus) + (row.folded > 1 ? ` and ${row.folded - 1} more` : "") }))
    .filter((row) => !filter || filter.test(row.label));
  rows.sort((a, b) => Number(a.metric.startsWith("hw")) - Number(b.metric.startsWith("hw")));
  const cells = new Uint8Array(rows.length * heat.columns);
  const lo = heat.lo ?? 0;
  const hi = heat.hi ?? 0;
  rows.forEach((row, place) => {
    for (let column = 0; column < heat.columns; column += 1) {
      const cell = heat.cells[row.at * heat.columns + column]!;
      const value = lo + (hi - lo) * cell / HIGHEST;
      cells[place * heat.columns + column] = cell > HIGHEST ? cell : Math.round(Math.min(1, Math.max(0, value)) * HIGHEST);
    }
  });
  return { ...heat, rows, cells, lo: 0, hi: 1, time: true };
}

const share = (heat: Heat, row: number, column: number) => {
  const cell = heat.cells[row * heat.columns + column] ?? NOTHING;
  return cell > HIGHEST ? "no sample" : `${Math.round(cell / HIGHEST * 100)} %`;
};

function core_sentence(heat: Heat): string {
  const means = heat.rows.map((row, at) => {
    const cells = [...heat.cells.subarray(at * heat.columns, (at + 1) * heat.columns)].filter((cell) => cell <= HIGHEST);
    return { row, mean: cells.reduce((sum, cell) => sum + cell, 0) / Math.max(1, cells.length) / HIGHEST };
  });
  const least = means.reduce((a, b) => (b.mean < a.mean ? b : a));
  const most = means.reduce((a, b) => (b.mean > a.mean ? b : a));
  const percent = (mean: number) => `${Math.round(mean * 100)} %`;
  const busy = percent(most.mean) === percent(least.mean) ? `${heat.rows.length === 1 ? "Busy" : "All are equally busy"} on average: ${percent(most.mean)}.` :
    `Busiest on average: ${most.row.label}, ${percent(most.mean)}; least: ${least.row.label}, ${percent(least.mean)}.`;
  return `${heat.rows.length} ${heat.rows.length === 1 ? "row" : "rows"}, ${clock(heat.from)} to ${clock_words(heat.to)}. ${busy} 1 column = ${heat.width / 1000} s, the mean of its samples.`;
}

function CoreFigure({ heat, marks: all_marks, at, point, choose }: { heat: Heat; marks: Mark[]; at: number | null; point: (x: number) => void; choose: (row: CoreRow) => void }) {
  const marks = useMarks(all_marks);
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HeatCanvas | null>(null);
  const [cell, set_cell] = useState<[number, number] | null>(null);
  const now = useRef({ heat, at, point, choose });
  now.current = { heat, at, point, choose };
  useEffect(() => {
    const made = new HeatCanvas(box.current!, {
      point: (row, column) => {
        set_cell([row, column]);
        const { heat: shown, at: there, point: tell } = now.current;
        const inside = there !== null && Math.floor((there - shown.from) / shown.width) === column;  // it follows
        if (!inside) tell(shown.from + (column + 0.5) * shown.width);
      },
      choose: (row) => now.current.choose(now.current.heat.rows[row]! as CoreRow),
    }, TALL);
    canvas.current = made;
    return () => made.leave();
  }, []);
  useEffect(() => { canvas.current?.show(heat, marks, null); }, [heat, marks]);
  useEffect(() => { canvas.current?.follow(at); }, [at, heat]);
  const said = core_sentence(heat);
  const row = cell ? heat.rows[cell[0]] : undefined;
  return (
    <figure class="heat">
      <SavePicture of={canvas} title="Utilization of cores and GPUs" x="time" />
      <p class="read" aria-live={speaks(box.current)}>{cell && row && at !== null ? `${clock_words(heat.from + cell[1] * heat.width)}, ${row.label}: ${share(heat, ...cell)}` : " "}</p>
      <div class="cells" ref={box} tabIndex={0} role="img" onKeyDown={(event) => heat_press(event, canvas.current)} aria-label={`Utilization of cores and GPUs. ${said} ${marks.map((mark) => mark.text).join(". ")} Arrow keys read cells, Enter draws the row above.`} />
      <p class="legend"><span>0 % <i class="ramp dark-high" /> 100 %, dark is busy</span><span><i class="checker" /> no sample</span></p>
      <figcaption class="dim"><p>{said}</p></figcaption>
    </figure>
  );
}

export function CoresPanel({ uid, node, gpus, range, at, point, choose, happened }:
  { happened: Happened; uid: string; node: string; gpus: string[]; range: string; at: number | null; point: (x: number) => void; choose: (kind: "cpu" | "gpu", label: string) => void }) {
  const turn = useSlow(turn_of(uid));
  const [filter, set_filter] = useState("");
  const { answer, error } = useAsked<Heat>(`/runs/${encodeURIComponent(uid)}/system/heatmap?format=bin&node=${node}${range}`, turn, ask_heat);
  let expression: RegExp | null = null;
  let wrong = false;
  try { expression = filter ? new RegExp(filter, "i") : null; } catch { wrong = true; }
  const heat = useMemo(() => answer && shown_of(answer, gpus, expression), [answer, filter, gpus.join()]);
  return (
    <section class="panel" id="cores">
      <h2>All cores and GPUs</h2>
      <p class="tools"><label>Filter rows <input type="search" value={filter} placeholder="cpu(1|2)$" onInput={(event) => set_filter(event.currentTarget.value)} /></label></p>
      {error && <p class="fault" role="alert">{error.message}</p>}
      {wrong && <p class="fault">This is no regular expression.</p>}
      {heat && heat.rows.length === 0 && <p class="dim">{answer!.rows.length > 0 ? "No row fits the filter." : "No sample of a core or a GPU: the collectors cpu and gpu are off."}</p>}
      {heat && heat.rows.length > 0 && <CoreFigure heat={heat} marks={time_marks(happened, heat.from, heat.to)} at={at} point={point}
        choose={(row) => choose(row.metric.startsWith("hw") ? "gpu" : "cpu", row.label!.replace(/ and .*/, ""))} />}
      {answer && answer.left_out > 0 && <p class="fault">{answer.left_out} more rows are not drawn.</p>}
    </section>
  );
}
