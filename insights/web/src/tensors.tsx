// All tensors of a run: which are abnormal, from which step on, in which direction does it spread?
import { useRef, useState } from "preact/hooks";
import { ask, Refused, type RunPage } from "./api";
import { short } from "./chart";
import { Figure, useAsked } from "./curves";
import { exactly, type Curves, type Name } from "./curve_data";
import { ask_heat, type Heat } from "./heat_data";
import { HeatFigure } from "./heat_figure";
import { HistogramPanel } from "./histogram";
import { HealthBars, type Health } from "./health";
import type { Hardware } from "./hardware";
import { marks_of } from "./marks";
import { Marks } from "./marks_list";
import { Asked } from "./parts";
import { place, set_queries, set_query } from "./place";
import { Head } from "./run_head";
import { restart_marks } from "./attempts";
import { turn_of } from "./stream";
import { useSlow } from "./slow";

const STATS = ["l2", "mean", "std", "min", "max", "abs_max", "abs_mean", "zero", "negative", "nan", "posinf", "neginf"];
const SIGNED = new Set(["mean", "min", "max"]);  // a logarithm would hide half of them
const ROWS: [string, string][] = [["model", "model order"], ["name", "by name"], ["value", "worst first"]];
const TALL = 440;
const MOST_NAMES = 100;
const REST = 150;         // ms that the cursor stays before the bars are asked for

const asked = (name: string) => place.value.query.get(name) ?? "";
const step_of = (name: string) => (/^\d+$/.test(asked(name)) ? Number(asked(name)) : null);

function Nothing({ heat, filtered }: { heat: Heat; filtered: boolean }) {
  if (filtered) return <p class="dim">No tensor has a name that fits the filter. <button type="button" onClick={() => set_query("q", "")}>Show all</button></p>;
  if (heat.tensors_gone) return <p class="dim">Tensors of this run gave way to newer ones, because curves.db was larger than <code>insights.max_curve_bytes</code>.</p>;
  if (heat.refused > 0) return <p class="dim">{heat.refused} values were left out: the run has too many series.</p>;
  return (
    <div class="dim"><p>No tensor was measured: the run has no model that is watched, or its capture is off. These lines capture them:</p>
      <pre><code>{"capture:\n  every: 10 steps\n  collections: {gradients: {}, weights: {}}"}</code></pre>
      <p>A loop of your own gives them by <code>hook.emit("gradient/fc.weight", array, role="gradient")</code>.</p></div>
  );
}

function Tools({ heat, stat, log }: { heat: Heat | null; stat: string; log: boolean }) {
  const rows = asked("rows") || "model";
  return (
    <p class="tools">
      <label>Filter <input type="search" value={asked("q")} placeholder="gradient/.*weight" onInput={(event) => set_query("q", event.currentTarget.value)} /></label>
      <label>Statistic <select value={stat} onChange={(event) => set_queries({ stat: event.currentTarget.value, scale: "" })}>{STATS.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
      <label>Rows <select value={rows} onChange={(event) => set_query("rows", event.currentTarget.value)}>{ROWS.map(([value, word]) => <option key={value} value={value}>{word}</option>)}</select></label>
      {heat && heat.modes.length > 1 && <label>Mode <select value={heat.mode ?? ""} onChange={(event) => set_query("mode", event.currentTarget.value)}>{heat.modes.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>}
      <button type="button" aria-pressed={log} onClick={() => set_query("scale", log ? "linear" : "log10")}>Logarithmic</button>
      {(asked("from") || asked("to")) && <button type="button" onClick={() => set_queries({ from: "", to: "" })}>All steps</button>}
    </p>
  );
}

function Names({ names, total, selected, choose }: { names: Name[]; total: number; selected: string | null; choose: (name: string) => void }) {
  return (
    <section class="panel" id="names">
      <h2>Tensors {names.length < total ? `${names.length} of ${total}` : total}, worst first</h2>
      <ul class="lines names">{names.map((one) => (
        <li key={one.name}><button type="button" class="plain" aria-pressed={one.name === selected} onClick={() => choose(one.name)}>{one.name}</button>
          <span class={one.first_bad_step !== null ? "bad" : "dim"}>{one.first_bad_step !== null ? `not finite from step ${one.first_bad_step}` : one.worst === null ? "" : `at most ±${short(one.worst)}`}</span>
          {one.shape && <span class="dim"> {one.shape}</span>}</li>))}</ul>
      {names.length < total && <p class="dim">{total - names.length} more: narrow the filter.</p>}
    </section>
  );
}

function Panels({ answer }: { answer: RunPage }) {
  const turn = useSlow(turn_of(answer.run.uid));
  const run = `/runs/${encodeURIComponent(answer.run.uid)}`;
  const stat = STATS.includes(asked("stat")) ? asked("stat") : "l2";
  const log = asked("scale") ? asked("scale") !== "linear" : !SIGNED.has(stat);
  const filter = asked("q");
  const query = new URLSearchParams(filter ? { name: `(?i).*(?:${filter}).*` } : {});
  if (asked("mode")) query.set("mode", asked("mode"));
  const named = query.toString();
  for (const one of ["from", "to", "rows"]) if (asked(one)) query.set(one, asked(one));
  const heat = useAsked<Heat>(`${run}/heatmap?format=bin&stat=${stat}&scale=${log ? "log10" : "linear"}&${query}`, turn, ask_heat);
  const names = useAsked<{ items: Name[]; total: number; refused: number }>(`${run}/names?kind=tensor&sort=worst&limit=${MOST_NAMES}&${named}`, turn);
  const mode = heat.answer?.mode;
  const items = names.answer?.items ?? [];
  const chosen = asked("sel") || null;
  const selected = chosen ?? items[0]?.name ?? null;
  const [hovered, set_hovered] = useState<number | null>(null);
  const rest = useRef(0);
  const at = hovered ?? step_of("step");
  const health = useAsked<Health>(`${run}/health?limit=500&${named}${at === null ? "" : `&step=${at}`}`, turn).answer;
  const several = items.some((one) => one.name === selected && one.workers > 1);
  const bounds = ["from", "to"].map((one) => (asked(one) ? `&${one}=${asked(one)}` : "")).join("");
  const steps = [["from", asked("from")], ["to", asked("to")], ["agg", several ? "mean" : ""]].filter(([, value]) => value).map(([name, value]) => `&${name}=${value}`).join("");
  const curves = useAsked<Curves>(selected && mode ? `${run}/series?stat=${stat}&mode=${mode}&points=600&name=${encodeURIComponent(exactly([selected]))}${steps}` : null, turn).answer;
  const hardware = useAsked<Hardware>(`${run}/hardware`, turn).answer?.items;
  const trained = mode === "train" || !mode;
  const marks = [...(trained ? marks_of({ ...answer, uid: answer.run.uid, hardware }) : []), ...restart_marks(heat.answer?.restarts ?? [], mode ?? "train", answer.run.uid)].sort((a, b) => a.x - b.x);
  const error = heat.error ?? names.error;
  if (error instanceof Refused && error.status === 401) return null;
  const grid = heat.answer;
  const point = (column: number) => {
    window.clearTimeout(rest.current);
    const step = grid!.from + (column + 1) * grid!.width - 1;
    rest.current = window.setTimeout(() => set_hovered(step), REST);
  };
  const choose = (name: string, step?: number) => set_queries({ sel: name, ...(step === undefined ? {} : { step: String(step) }) });
  const drawn = curves?.series.filter((one) => one.name === selected) ?? [];
  return <>
    <section class="panel" id="heat">
      <h2>{stat} of all tensors{mode && mode !== "train" ? `, ${mode}` : ""}</h2>
      <Tools heat={grid} stat={stat} log={log} />
      {error && <p class="fault" role="alert">{error.message}</p>}
      {grid && grid.tensors === 0 && <Nothing heat={grid} filtered={filter !== ""} />}
      {grid && grid.tensors > 0 && <>
        <Marks marks={marks} />
        <HeatFigure title={`${stat} of all tensors${mode && mode !== "train" ? `, ${mode}` : ""}`} heat={grid} marks={marks} selected={selected} most={TALL} point={point} choose={choose} />
        {grid.left_out > 0 && <p class="fault">{grid.left_out} more tensors are not drawn: narrow the filter.</p>}
        {grid.refused > 0 && <p class="fault">{grid.refused} values were left out: a run may have 200 000 series.</p>}
        {grid.tensors_gone && <p class="dim">Older tensors of this run gave way, because curves.db was larger than <code>insights.max_curve_bytes</code>.</p>}</>}
    </section>
    {grid && grid.tensors > 0 && <div class="columns">
      <div>{health && <HealthBars health={health} selected={selected} choose={choose} />}</div>
      <div>
        <section class="panel" id="selected"><h2>{stat} of the chosen tensor</h2>
          {curves && drawn.length > 0 && <Figure key={`${selected} ${stat}`} name={selected!} mode={drawn[0]!.mode} curves={drawn} answer={curves} marks={marks} log={log}
            zoom={(range) => set_queries({ from: range.from === null ? "" : String(range.from), to: range.to === null ? "" : String(range.to) })} />}
          {curves && drawn.length === 0 && <p class="dim">It has no values in these steps.</p>}</section>
        {selected && mode && <HistogramPanel key={selected} run={run} name={selected} mode={mode} range={bounds} turn={turn} marks={marks} />}
        {names.answer && <Names names={items} total={names.answer.total} selected={selected} choose={choose} />}
      </div>
    </div>}
  </>;
}

export function TensorsScreen({ uid }: { uid: string }) {
  return (
    <Asked<RunPage> name={`/runs/${uid}`} load={() => ask(`/runs/${encodeURIComponent(uid)}`)}>{(answer) => {
      document.title = `${answer.run.job ?? answer.run.uid}: tensors · Tocsin`;
      return <><Head run={answer.run} at="tensors" /><Panels answer={answer} /></>;
    }}</Asked>
  );
}
