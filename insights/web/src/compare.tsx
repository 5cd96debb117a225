// Runs side by side: from which step on does this one differ from that one?
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refused, type RunPage, type RunRow } from "./api";
import { BaselinePanel, line_of_band, useBaseline } from "./baseline";
import { Chart, short, type Line } from "./chart";
import { colour_of, dashes_of } from "./colours";
import { curve_of, differences, first_apart, lines_of_runs, modes_of, run_words, type Axis, type Compared } from "./compare_data";
import { exactly, facts_of, usual_names, type Curves, type Name } from "./curve_data";
import { watch_theme } from "./look";
import { Link, Panel, SignIn } from "./parts";
import { place, set_query } from "./place";
import { colours_of_runs } from "./run_colours";
import { changed } from "./stream";
import { SavePicture } from "./save_picture";
import { show_run } from "./shown_run";
import { WideTable } from "./wide_table";

const MOST_RUNS = 8;
const AXES: [Axis, string][] = [["step", "step"], ["time", "seconds since the first value"], ["fraction", "share of the run, in thousandths"]];
const asked = (name: string) => place.value.query.get(name) ?? "";

interface Found { runs: RunRow[]; names: Name[]; missing: string[] }

async function find(uids: string[]): Promise<Found> {
  const pages = await Promise.all(uids.map((uid) => ask<RunPage>(`/runs/${encodeURIComponent(uid)}`).catch((why: Error) => {
    if (why instanceof Refused && why.status === 404) return null;
    throw why;
  })));
  const runs = pages.flatMap((page) => (page ? [page.run] : []));
  const lists = await Promise.all(runs.map((run) => ask<{ items: Name[] }>(`/runs/${run.uid}/names?limit=1000`)));
  const names = [...new Map(lists.flatMap((list) => list.items).map((one) => [one.name, one])).values()];
  return { runs, names, missing: uids.filter((_, at) => !pages[at]) };
}

function CompareChart({ name, all, mode, axis, log, band, colours }: { name: string; all: Compared[]; mode: string; axis: Axis; log: boolean; band: Line | null; colours: number[] }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [at, set_at] = useState<number | null>(null);
  const lines = [...lines_of_runs(all, mode, axis, colours), ...(band && axis === "step" ? [band] : [])];
  const show = useRef(() => {});
  show.current = () => {
    const ends = lines.flatMap((line) => [line.x[0] ?? 0, line.x[line.x.length - 1] ?? 0]);
    chart.current?.show(lines, [], log, Math.min(...ends), Math.max(...ends) + 1);
  };
  useEffect(() => {
    const made = new Chart(box.current!, { point: set_at, range: () => undefined, whole: () => undefined }, log);
    chart.current = made;
    const left = watch_theme(() => show.current());
    return () => { left(); made.leave(); };
  }, []);
  useEffect(() => show.current(), [all, mode, axis, log, band, colours.join()]);
  const read = at === null ? " " : `${axis} ${at}: ${lines.flatMap((line) => {
    let near = line.x.length - 1;
    while (near >= 0 && line.x[near]! > at) near -= 1;
    return near < 0 ? [] : [`${line.label} ${line.mid[near] == null ? "not finite" : short(line.mid[near]!)}`];
  }).join(" · ")}`;
  const key = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 };
    if (by[event.key] === undefined) return;
    event.preventDefault();
    chart.current?.step(by[event.key]!);
  };
  return (
    <figure class="chart">
      <SavePicture of={chart} title={`${name}${mode !== "train" ? ` · ${mode}` : ""}`} x={AXES.find(([one]) => one === axis)![1]} y={log ? "logarithmic" : ""} />
      <p class="keys">{lines.map((line) => <span key={line.label} data-colour={colour_of(line.colour!)}><svg width="28" height="6" aria-hidden="true"><line x1="0" y1="3" x2="28" y2="3" stroke={colour_of(line.colour!)} stroke-width="3" stroke-dasharray={dashes_of(line.colour!).join(" ")} /></svg> {line.label}</span>)}</p>
      <p class="read" aria-live="polite">{read}</p>
      <div class="plot" ref={box} tabIndex={0} role="img" onKeyDown={key} aria-label={`${lines.map((line) => `${line.label}: ${line.x.length} points`).join(". ")}. Arrow keys read values.`} />
    </figure>
  );
}

function Numbers({ all, mode }: { all: Compared[]; mode: string }) {
  const first = curve_of(all[0]?.answer ?? null, mode);
  return (
    <WideTable label="numbers"><thead><tr><th scope="col">Run</th><th scope="col">Last</th><th scope="col">Least</th><th scope="col">Greatest</th><th scope="col">Not finite</th><th scope="col">Differs from the first run</th></tr></thead>
      <tbody>{all.map(({ run, answer }, at) => {
        const curve = curve_of(answer, mode);
        if (!curve) return <tr key={run.uid}><th scope="row"><Link to={`/runs/${run.uid}`}>{run_words(run)}</Link></th><td colSpan={5}>has no such curve</td></tr>;
        const facts = facts_of(curve);
        const apart = at === 0 || !first ? null : first_apart(first, curve);
        const exact = (answer?.width ?? 1) === 1 && (all[0]?.answer?.width ?? 1) === 1;
        const comparable = answer?.width === all[0]?.answer?.width;
        const said = at === 0 ? "" : !comparable ? "runs of so different a length: not told" : apart === null ? "nowhere, in the steps that both have" : exact ? `from step ${apart} on` : `from steps ${apart} to ${apart + answer!.width - 1} on`;
        const place_words = (one: { x: number; value: number } | null) => (one ? `${short(one.value)} at step ${one.x}` : "–");
        return <tr key={run.uid}><th scope="row"><Link to={`/runs/${run.uid}`}>{run_words(run)}</Link></th><td>{place_words(facts.last)}</td><td>{place_words(facts.least)}</td><td>{place_words(facts.most)}</td><td>{facts.bad}</td><td>{said}</td></tr>;
      })}</tbody></WideTable>
  );
}

export function CompareScreen() {
  const uids = asked("runs").split(",").filter(Boolean).slice(0, MOST_RUNS);
  const [found, set_found] = useState<Found | null>(null);
  const [all, set_all] = useState<Compared[]>([]);
  const [why, set_why] = useState<Error | null>(null);
  const [again, set_again] = useState(0);
  useEffect(() => { find(uids).then((answer) => { set_found(answer); set_why(null); }, set_why); }, [uids.join(), changed.value, again]);
  const name = asked("v") || (found ? usual_names(found.names, 1)[0] : undefined);
  useEffect(() => {
    if (!found || !name) return;
    const query = new URLSearchParams({ name: exactly([name]), points: "600", agg: "mean" });
    Promise.all(found.runs.map(async (run) => ({ run, answer: await ask<Curves>(`/runs/${run.uid}/series?${query}`) }))).then(set_all, set_why);
  }, [found, name]);
  document.title = "Compare · Tocsin";
  show_run(null, "compare");
  if (why instanceof Refused && why.status === 401) return <SignIn done={() => set_again(again + 1)} />;
  const modes = modes_of(all);
  const mode = modes.includes(asked("mode")) ? asked("mode") : modes[0] ?? "train";
  const axis = AXES.find(([one]) => one === asked("x"))?.[0] ?? "step";
  const log = asked("log") === "true";
  const baseline = useBaseline(asked("baseline") === "job" && name ? { runs: uids.join(), name, mode } : null);
  const rows = differences(found?.runs ?? []);
  const colours = colours_of_runs(all.map((one) => one.run.uid), asked("colours"));
  const together = all.map((one) => one.run.uid).join();
  useEffect(() => { if (all.length > 0 && asked("colours") !== colours.join()) set_query("colours", colours.join()); }, [together]);
  return (
    <>
      <h1>Compare</h1>
      {why && <p class="fault" role="alert">{why.message}</p>}
      {uids.length < 2 && asked("baseline") !== "job" && <p>Mark two to {MOST_RUNS} runs in the <Link to="/">list of runs</Link>, and press Compare.</p>}
      {found && found.missing.length > 0 && <p class="fault" role="alert">No run has a uid that begins with {found.missing.join(", ")}.</p>}
      {found && found.runs.length > 0 && (uids.length >= 2 || asked("baseline") === "job") && <>
        <p class="tools">
          <label>Curve <select value={name ?? ""} onChange={(event) => set_query("v", event.currentTarget.value)}>{found.names.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}</select></label>
          {modes.length > 1 && <label>Mode <select value={mode} onChange={(event) => set_query("mode", event.currentTarget.value)}>{modes.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>}
          <label>Along <select value={axis} onChange={(event) => set_query("x", event.currentTarget.value)}>{AXES.map(([value, words]) => <option key={value} value={value}>{words}</option>)}</select></label>
          <button type="button" aria-pressed={log} onClick={() => set_query("log", log ? "" : "true")}>Logarithmic</button>
          <button type="button" aria-pressed={asked("baseline") === "job"} onClick={() => set_query("baseline", asked("baseline") === "job" ? "" : "job")}>Baseline of the job</button></p>
        {!name && <p class="dim">None of these runs has logged a scalar.</p>}
        {all.length > 0 && name && <Panel title={name}><CompareChart name={name} all={all} mode={mode} axis={axis} log={log} band={line_of_band(baseline.answer)} colours={colours} /><Numbers all={all} mode={mode} /></Panel>}
        <BaselinePanel of={baseline} runs={found.runs} axis={axis} />
        <Panel title="In what they differ">{rows.length === 0 ? <p>In nothing that Tocsin was told: give <code>labels=</code> to <code>tocsin.watch</code>.</p> :
          <WideTable label="differences"><thead><tr><th scope="col"><span class="said">what</span></th>{found.runs.map((run) => <th scope="col" key={run.uid}>{run_words(run)}</th>)}</tr></thead>
            <tbody>{rows.map((row) => <tr key={row.name}><th scope="row">{row.name}</th>{row.values.map((value, at) => <td key={at}>{value}</td>)}</tr>)}</tbody></WideTable>}</Panel>
      </>}
    </>
  );
}
