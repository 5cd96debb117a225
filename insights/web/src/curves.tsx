// Curves of a run: charts with marks, a range that is zoomed into, and what else could be shown.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, Refused } from "./api";
import { attempt_at, restart_marks, stretches_of_steps, stretches_words } from "./attempts";
import { ask_together } from "./together";
import { press_chart } from "./chart_keys";
import { Chart } from "./chart";
import { colour_of } from "./colours";
import { charts_of, exactly, lines_of, read_out, sentence, usual_names, type Curve, type Curves, type Name } from "./curve_data";
import { lost_words } from "./losses";
import { watch_theme, zone } from "./look";
import { moment } from "./past";
import type { Hardware } from "./hardware";
import { useSlow } from "./slow";
import { marks_of, type Happened, type Mark } from "./marks";
import { Marks, useMarks } from "./marks_list";
import { Near } from "./near";
import { joined } from "./resumed";
import { pin, pinned, usePinned } from "./pinned";
import { place, set_query, set_queries } from "./place";
import { steps_of_mode } from "./shared_cursor";
import { turn_of } from "./stream";
import { names_for, missing_of, step_axis, X_WORDS, type StepAxis } from "./step_axis";
import { AxisChoice, x_shown } from "./step_axis_choice";
import { SavePicture } from "./save_picture";
import { StackTable } from "./wide_table";

const MOST_NAMES = 4;  // until somebody chooses
const MOST_CHARTS = 6;
const MOST_ROWS = 200;

interface Range { from: number | null; to: number | null }
const bound = (name: string) => { const text = place.value.query.get(name); return text !== null && /^\d+$/.test(text) ? Number(text) : null; };

function DataTable({ curves, labels, axis }: { curves: Curve[]; labels: string[]; axis: StepAxis | null }) {
  return (
    <details><summary>Table</summary>
      {curves.map((curve, which) => (
        <StackTable key={which} first_too><caption>{curve.name}, {labels[which]}{curve.x0.length > MOST_ROWS && `: the last ${MOST_ROWS} of ${curve.x0.length} points`}</caption>
          <thead><tr><th scope="col">step</th>{axis && <th scope="col">{X_WORDS[axis.x]}</th>}<th scope="col">{curve.value ? "value" : "mean"}</th>{curve.min && <><th scope="col">least</th><th scope="col">greatest</th></>}<th scope="col">not finite</th></tr></thead>
          <tbody>{curve.x0.map((x, at) => ({ x, at })).slice(-MOST_ROWS).map(({ x, at }) => {
            const bad = curve.bad.find((row) => row[0] === at);
            const unit = curve.unit && curve.unit !== "1" ? curve.unit : undefined;
            return <tr key={x}><td>{x}</td>{axis && <td>{axis.words_of(curve, at) || "–"}</td>}<td data-unit={unit}>{(curve.value ?? curve.mean ?? [])[at] ?? "–"}</td>{curve.min && <><td data-unit={unit}>{curve.min[at] ?? "–"}</td><td data-unit={unit}>{curve.max?.[at] ?? "–"}</td></>}<td>{bad ? bad[1]! + bad[2]! + bad[3]! : ""}</td></tr>;
          })}</tbody></StackTable>))}
    </details>
  );
}

export function Figure({ name, mode, curves, answer, marks: all_marks, log, zoom, axis = null }:
  { name: string; mode: string; curves: Curve[]; answer: Curves; marks: Mark[]; log: boolean; zoom: ((range: Range) => void) | null; axis?: StepAxis | null }) {
  const marks = useMarks(axis ? axis.marks(all_marks, answer.restarts, mode) : all_marks);
  const by = useRef(axis);
  by.current = axis;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [at, set_at] = useState<number | null>(null);
  const act = useRef(zoom);
  act.current = zoom;
  const show = useRef<() => void>(() => {});
  const lines = axis ? axis.lines(lines_of(curves), curves) : lines_of(curves);
  const labels = lines.map((line) => line.label);
  useEffect(() => {
    const made = new Chart(box.current!, { point: set_at, range: (from, to) => act.current?.({ from, to }), whole: () => act.current?.({ from: null, to: null }) }, log, { together: steps_of_mode(mode), axis: axis ? () => by.current! : undefined });
    chart.current = made;
    const left = watch_theme(() => show.current());
    return () => { left(); made.leave(); };
  }, []);
  // The steps that were asked for; of all steps, those that there are, with the marks behind the last one.
  const first = zoom ? answer.from : Math.min(...curves.map((one) => one.x0[0] ?? 0));
  const last = Math.max(...curves.map((one) => one.x0[one.x0.length - 1] ?? 0)) + answer.width;
  const end = !zoom ? last : place.value.query.has("to") ? answer.to :
    Math.max(Math.min(answer.to, last), ...marks.map((mark) => mark.x <= answer.to + answer.width * 10 ? mark.x + 2 : 0));
  const stretches = stretches_of_steps(answer.restarts, mode);
  show.current = () => chart.current?.show(lines, marks, log, first, end, stretches);
  useEffect(() => show.current(), [answer, marks, log, name, axis, zone.value]);
  const key = (event: KeyboardEvent) => press_chart(event, { chart: chart.current, at, marks, whole: () => zoom?.({ from: null, to: null }) });
  // All charts follow one cursor; the one that has it speaks.
  const mine = box.current !== null && (document.activeElement === box.current || box.current.matches(":hover"));
  const said = curves.map((curve, which) => sentence(curve, labels[which]!, answer));
  const hidden = log ? lines.reduce((sum, line) => sum + line.mid.filter((value) => value !== null && value <= 0).length, 0) : 0;
  return (
    <figure class="chart" data-name={name} data-mode={mode} data-x={axis?.x ?? "step"}>
      <SavePicture of={chart} title={`${name}${mode !== "train" ? ` · ${mode}` : ""}`} x={axis ? X_WORDS[axis.x] : "step"} y={[curves[0]?.unit !== "1" && curves[0]?.unit, log && "logarithmic"].filter(Boolean).join(", ")} />
      <h3>{name}{mode !== "train" && ` · ${mode}`}{lines.length > 1 && <span class="keys">{lines.map((line, which) => (
        <span key={which}><i style={{ background: colour_of(which) }} /> {line.label}</span>))}</span>}</h3>
      <p class="read" aria-live={mine ? "polite" : "off"}>{at === null ? " " : (axis ? axis.read(curves, labels, at, answer.width) : read_out(curves, labels, at, answer.width)) + attempt_at(stretches, at, answer.width)}</p>
      <div class="plot" ref={box} tabIndex={0} role="img" onKeyDown={key}
        aria-label={`${said.join(" ")} ${stretches_words(stretches, false)} ${marks.map((mark) => mark.text).join(". ")} Arrow keys read values, plus and minus zoom, 0 shows all steps.`} />
      <figcaption class="dim">{said.map((text, which) => <p key={which}>{text}</p>)}{lost_words(curves, answer).map((text) => <p key={text} class="lost">{text}</p>)}{hidden > 0 && <p>{hidden} values of 0 or below are not on a logarithmic scale.</p>}</figcaption>
      <DataTable curves={curves} labels={labels} axis={axis} />
    </figure>
  );
}

function Picker({ names, shown, total, job }: { names: Name[]; shown: string[]; total: number; job: string | null }) {
  const [wanted, set_wanted] = useState("");
  const fits = names.filter((one) => one.name.toLowerCase().includes(wanted.toLowerCase()));
  const choose = (chosen: string[]) => { void pin(job, chosen); set_query("v", chosen.map(encodeURIComponent).join(",")); };
  const turn = (name: string) => choose(shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name]);
  return (
    <details class="picker"><summary>Other curves ({total})</summary>
      <label>Filter <input type="search" value={wanted} onInput={(event) => set_wanted(event.currentTarget.value)} /></label>
      <ul class="lines">{fits.slice(0, 100).map((one) => (
        <li key={one.name}><label><input type="checkbox" checked={shown.includes(one.name)} onChange={() => turn(one.name)} /> {one.name} <span class="dim">{one.modes.join(", ")}{!moment.value && <>, last {String(one.last ?? "–")} at step {one.last_step}</>}</span></label></li>))}</ul>
      {fits.length > 100 && <p class="dim">{fits.length - 100} more: narrow the filter.</p>}
      {job && pinned(job).length > 0 && <p class="dim">These are shown for the next run of {job} too. <button type="button" onClick={() => choose([])}>Usual curves</button></p>}
    </details>
  );
}

// What `path` gives: asked again when the run has moved and when it changes; the newest answer stays meanwhile. When the run has
// moved all charts ask at the same moment: that is one request.
export function useAsked<T>(path: string | null, turn: number, load: (path: string) => Promise<T> = turn > 0 ? ask_together : ask): { answer: T | null; error: Error | null } {
  const [answer, set_answer] = useState<T | null>(null);
  const [error, set_error] = useState<Error | null>(null);
  useEffect(() => {
    if (path === null) return;
    let left = false;
    load(path).then((value) => { if (!left) { set_answer(value); set_error(null); } }, (why: Error) => { if (!left) set_error(why); });
    return () => { left = true; };
  }, [path, turn]);
  return { answer, error };
}

// `more`: marks beside those of what happened; without a chosen range they are inside the one that is shown.
export function CurvePanel({ uid, job, happened, only, around, id, title, more = [], started }:
  { uid: string; started: string | null; job?: string | null; happened: Happened; only?: string | null; around?: number | null; id: string; title: string; more?: Mark[] }) {
  const turn = turn_of(uid);
  const run = `/runs/${encodeURIComponent(uid)}`;
  const names = useAsked<{ items: Name[]; total: number }>(`${run}/names?limit=1000`, turn, ask_together);  // at the same moment: one request
  const chosen = place.value.query.get("v");
  const items = names.answer?.items ?? [];
  const kept = usePinned(only === undefined ? job ?? null : null);
  const kept_names = (kept ?? []).filter((name) => items.some((one) => one.name === name));
  const usual = kept_names.length > 0 ? kept_names : only && items.some((one) => one.name === only) ? [only] : usual_names(items, only === undefined ? MOST_NAMES : 1);
  const shown = chosen !== null && only === undefined ? chosen.split(",").filter(Boolean).map(decodeURIComponent).filter((name) => items.some((one) => one.name === name)) : kept === null ? [] : usual;
  const asked = place.value.query.has("from") || place.value.query.has("to");
  const whole = place.value.query.get("steps") === "all";
  const near = around != null && !asked && !whole ? { from: Math.max(0, Math.min(around - 150, ...more.map((mark) => mark.x - 10))), to: Math.max(around + 51, ...more.map((mark) => mark.x + 11)) } : null;
  const from = near?.from ?? bound("from");
  const to = near?.to ?? bound("to");
  const several = items.some((one) => shown.includes(one.name) && one.workers > 1);
  const began = started === null ? null : Date.parse(started);
  const missing = missing_of(items, began);
  const x = x_shown(missing);
  const query = new URLSearchParams({ name: exactly([...shown, ...names_for(x, items)]), points: "600" });
  if (from !== null) query.set("from", String(from));
  if (to !== null) query.set("to", String(to));
  const table = new URLSearchParams({ format: "csv", name: exactly(shown) });
  if (from !== null) table.set("from", String(from));
  if (to !== null) table.set("to", String(to));
  if (several) query.set("agg", "mean");
  const curves = useAsked<Curves>(shown.length > 0 ? `${run}/series?${query}` : null, turn);
  const epochs = useAsked<Curves>(x === "epoch" && shown.length > 0 ? `${run}/series?${new URLSearchParams({ name: exactly(names_for(x, items)), points: "600", ...(several ? { agg: "mean" } : {}) })}` : null, turn).answer;
  const axes = useMemo(() => {
    const modes = new Set(curves.answer?.series.map((one) => one.mode));
    return new Map([...modes].map((mode) => [mode, step_axis(x, mode, curves.answer, epochs, began)]));
  }, [x, curves.answer, epochs, began]);
  const hardware = useAsked<Hardware>(`${run}/hardware`, useSlow(turn), ask_together).answer?.items;
  const log = place.value.query.get("log") === "true";
  const restarts = curves.answer?.restarts ?? [];
  const main = charts_of(curves.answer?.series ?? [], shown)[0]?.mode ?? "train";
  const all_marks = [...marks_of({ ...happened, hardware }), ...restart_marks(restarts, main, uid), ...more].sort((a, b) => a.x - b.x);
  const error = names.error ?? curves.error;
  if (error instanceof Refused && error.status === 401) return null;  // the screen asks who this is
  const answer = curves.answer;
  if (answer?.rows_from) table.set("from", String(Math.max(from ?? 0, answer.rows_from)));  // single values before it are gone
  const all = charts_of(answer?.series ?? [], shown).map((one) => ({ ...one, curves: joined(one.curves) }));
  const drawn = chosen === null ? all.slice(0, only === undefined ? MOST_CHARTS : 1) : all;
  const awaited = !error && !answer && (names.answer === null || items.length > 0);  // its place is kept: nothing below jumps
  // A range that reaches to the newest step follows it.
  const newest = Math.max(0, ...items.filter((one) => shown.includes(one.name) && one.modes.includes(main)).map((one) => one.last_step));
  const behind = !moment.value && asked && to !== null && newest >= to ? newest - to + 1 : 0;
  const zoom = (range: Range) => set_queries({ from: range.from === null ? "" : String(range.from), to: range.to === null || range.to > newest ? "" : String(range.to), steps: range.from === null && around != null ? "all" : "" });
  return (
    <section class="panel curves" id={id} style={awaited ? { minHeight: only === undefined ? "720px" : "360px" } : {}}>
      <h2>{title}</h2>
      {error && <p class="fault" role="alert">{error.message}</p>}
      {names.answer && items.length === 0 && <p class="dim">No scalar was logged yet: <code>hook.log(loss=…)</code></p>}
      {answer && items.length > 0 && <>
        <p class="tools"><span>steps {answer.from} to {Math.min(answer.to - 1, Math.max(...answer.series.map((one) => (one.x0[one.x0.length - 1] ?? 0) + answer.width - 1)))}</span>
          {behind > 0 && <button type="button" onClick={() => zoom({ from: Math.max(0, newest + 1 - (to! - (from ?? 0))), to: null })}>{behind} new {behind === 1 ? "step" : "steps"} →</button>}
          {(asked || near) && <button type="button" onClick={() => zoom({ from: null, to: null })}>All steps</button>}
          <AxisChoice missing={missing} unknown={drawn.map((one) => one.mode).filter((mode) => axes.get(mode) === null && [...axes.values()].some(Boolean))} />
          <button type="button" aria-pressed={log} onClick={() => set_query("log", log ? "" : "true")}>Logarithmic</button>
          {!moment.value && <a class="csv" href={`/api/v1${run}/series?${table}`} download title="Every stored value of these curves and steps, not only the points drawn">CSV</a>}</p>
        <Marks marks={all_marks} />
        <div class="charts">{drawn.map((one) => (
          <Near key={`${one.mode} ${one.name}`} height={340} always={drawn.length <= MOST_CHARTS}><Figure key={axes.get(one.mode)?.x ?? ""} {...one} axis={axes.get(one.mode) ?? null} answer={answer} marks={one.mode === main ? all_marks : restart_marks(restarts, one.mode, uid)} log={log} zoom={one.mode === main ? zoom : null} /></Near>))}</div>
        {answer.left_out > 0 && <p class="dim">{answer.left_out} more series are not drawn.</p>}
        {only === undefined && names.answer && <Picker names={items} shown={shown} total={names.answer.total} job={job ?? null} />}
      </>}
    </section>
  );
}
