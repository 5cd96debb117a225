// What completed runs of the same job came to: a band in the chart, and the step at which a run leaves it.
import { useMemo } from "preact/hooks";
import type { RunRow } from "./api";
import type { Line } from "./chart";
import { run_words, type Axis } from "./compare_data";
import { useAsked } from "./curves";
import { Link, Panel } from "./parts";
import { changed } from "./stream";
import { WideTable } from "./wide_table";

interface Band { x0: number[]; p5: number[]; p50: number[]; p95: number[]; siblings: number[] }
export interface Comparison {
  job: string; width: number; in_a_row: number; runs: { uid: string; points: number; leaves_at: number | null }[]; siblings: string[];
  band: Band | null; differences: { label: string; values: (string | null)[]; siblings: { value: string | null; runs: number }[] }[];
}
export interface Baseline { answer: Comparison | null; error: Error | null }

export function useBaseline(of: { runs: string; name: string; mode: string } | null): Baseline {
  const path = of && `/compare?${new URLSearchParams({ runs: of.runs, name: of.name, mode: of.mode, baseline: "job" })}`;
  const found = useAsked<Comparison>(path, changed.value);
  return useMemo(() => (path ? found : { answer: null, error: null }), [path, found.answer, found.error]);
}

const GREY = 4;  // its place in the table of colours

export const line_of_band = (answer: Comparison | null): Line | null => (answer?.band ?
  { label: `p5 to p95 of ${answer.siblings.length} completed runs`, x: answer.band.x0, mid: answer.band.p50, low: answer.band.p5, high: answer.band.p95, bad: [], faint: true, colour: GREY } : null);

function leaving(answer: Comparison, at: number | null, points: number): string {
  if (points === 0) return "has no such curve";
  if (at === null) return "does not leave the band";
  return answer.width === 1 ? `leaves the band at step ${at}` : `leaves the band within steps ${at} to ${at + answer.width - 1}`;
}

export function BaselinePanel({ of, runs, axis }: { of: Baseline; runs: RunRow[]; axis: Axis }) {
  const { answer, error } = of;
  if (error) return <p class="fault" role="alert">{error.message}</p>;
  if (!answer) return null;
  const count = answer.siblings.length;
  return (
    <Panel title="Baseline of the job" id="baseline">
      {!answer.band ? <p>{count === 1 ? "1 other completed run" : `${count} other completed runs`} of {answer.job || "this job"} {count === 1 ? "has" : "have"} this curve. A band needs three with a value at the same steps.</p> : <>
        <p>Band: p5 to p95 of {count} completed runs of {answer.job || "this job"}.{axis !== "step" && " It is drawn along steps only."}</p>
        <ul class="lines">{runs.map((run) => {
          const one = answer.runs.find((row) => row.uid === run.uid);
          return one && <li key={run.uid}><Link to={`/runs/${run.uid}`}>{run_words(run)}</Link> <span class={one.leaves_at === null ? "" : "bad"}>{leaving(answer, one.leaves_at, one.points)}</span></li>;
        })}</ul>
        <p class="dim">A run leaves the band where {answer.in_a_row} points in a row are outside it or not finite.</p></>}
      {count > 0 && answer.differences.length > 0 && <WideTable label="labels beside the baseline"><thead><tr><th scope="col">Label</th>{runs.map((run) => <th scope="col" key={run.uid}>{run_words(run)}</th>)}<th scope="col">Baseline</th></tr></thead>
        <tbody>{answer.differences.map((row) => <tr key={row.label}><th scope="row">{row.label}</th>{row.values.map((value, at) => <td key={at}>{value ?? "–"}</td>)}
          <td>{row.siblings.map((one) => `${one.value ?? "–"} (${one.runs})`).join(", ")}</td></tr>)}</tbody></WideTable>}
    </Panel>
  );
}
