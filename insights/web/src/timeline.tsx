// What does a step wait for? Lanes of every rank and track, and which share of a chosen span each phase has.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refused, type RunPage } from "./api";
import { fine_clock, fine_words } from "./clock";
import { useAsked } from "./curves";
import { exactly } from "./curve_data";
import { LanesCanvas, type Range } from "./lanes";
import { Asked } from "./parts";
import { phase_colour, seconds_words, share_words } from "./phase_colours";
import { place, set_queries, set_query } from "./place";
import { Head } from "./run_head";
import { useSlow } from "./slow";
import { bar_words, lanes_sentence, type Bar, type Lane, type Spans } from "./span_data";
import { StepTimesPanel } from "./step_times";
import { type Nodes, type SystemAnswer } from "./system_data";
import { TimeFigure } from "./time_figure";
import { turn_of } from "./stream";
import { WideTable } from "./wide_table";

const LAST = 30;
const MOST_EVENTS = 50;
const SYSTEM = { id: "system", title: "CPU, GPU and I/O wait, means of the node, %", unit: "%", factor: 100, top: 102 };
const asked = (name: string) => place.value.query.get(name) ?? "";
const number_of = (name: string) => (/^\d+$/.test(asked(name)) ? Number(asked(name)) : null);
const range_of = (from: string, to: string): Range => {
  const [lo, hi] = [number_of(from), number_of(to)];
  return lo !== null && hi !== null && hi > lo ? { from: lo, to: hi } : null;
};
const brush = (from: number, to: number) => set_queries({ b0: String(Math.round(from)), b1: String(Math.round(to)) });

function LanesFigure({ answer, brushed }: { answer: Spans; brushed: Range }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<LanesCanvas | null>(null);
  const [at, set_at] = useState<{ lane: Lane; bar: Bar } | null>(null);
  const now = useRef(answer);
  now.current = answer;
  useEffect(() => {
    const made = new LanesCanvas(box.current!, { point: (lane, bar) => set_at(bar && { lane: now.current.lanes[lane]!, bar }), brush, whole: () => set_queries({ b0: "", b1: "" }) });
    canvas.current = made;
    return () => made.leave();
  }, []);
  useEffect(() => { canvas.current?.show(answer, brushed); }, [answer, brushed?.from, brushed?.to]);
  const press = (event: KeyboardEvent) => {
    const one = canvas.current;
    const acts: Record<string, () => void> = { ArrowLeft: () => one?.step(0, -1), ArrowRight: () => one?.step(0, 1), ArrowUp: () => one?.step(-1, 0), ArrowDown: () => one?.step(1, 0),
      Home: () => one?.step(0, -1e9), End: () => one?.step(0, 1e9), Enter: () => one?.choose(), Escape: () => set_queries({ b0: "", b1: "" }) };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]!();
  };
  const said = lanes_sentence(answer);
  const names = [...new Set(answer.lanes.flatMap((lane) => lane.shares.map((one) => answer.names[one.name]!)))].slice(0, 12);
  return (
    <figure class="heat">
      <p class="read" aria-live="polite">{at ? `rank ${at.lane.rank}, ${at.lane.track}: ${bar_words(at.bar)}, at ${fine_words((answer.from + at.bar.start) / 1000, 0)}` : " "}</p>
      <div class="cells" ref={box} tabIndex={0} role="img" onKeyDown={press} aria-label={`Time line. ${said} Arrow keys read bars, Enter chooses the span of a bar, Escape chooses nothing.`} />
      <p class="legend">{names.map((name) => <span key={name}><i style={{ background: phase_colour(name) }} /> {name}</span>)}</p>
      <figcaption class="dim"><p>{said}</p></figcaption>
    </figure>
  );
}

// The shares of one rank and track in the chosen span; of the ranks one is looked at.
function SharesPanel({ answer, brushed }: { answer: Spans; brushed: Range }) {
  const [filter, set_filter] = useState("");
  let expression: RegExp | null = null;
  try { expression = filter ? new RegExp(filter, "i") : null; } catch { expression = null; }
  const rows = answer.lanes.flatMap((lane) => lane.shares.map((share) => ({ lane, share, name: answer.names[share.name]! })))
    .filter((row) => !expression || expression.test(row.name) || expression.test(row.lane.track)).sort((a, b) => b.share.seconds - a.share.seconds);
  const seconds = (answer.to - answer.from) / 1e6;
  const first = answer.lanes.find((lane) => lane.track === "phase");
  const covered = first?.shares.map((one) => ({ name: answer.names[one.name]!, share: one.share })) ?? [];
  return (
    <section class="panel" id="shares"><h2>{brushed ? "The chosen span" : "All that is shown"}: {fine_clock(answer.from / 1000, seconds * 1000)} to {fine_words(answer.to / 1000, seconds * 1000)}, {seconds_words(seconds)}</h2>
      {first && <><p class="bar-of tall" role="img" aria-label={`Shares of rank ${first.rank}: ${covered.map((one) => `${one.name} ${share_words(one.share)}`).join(", ")}`}>{covered.map((one) => (
        <i key={one.name} style={{ flex: `0 0 ${one.share * 100}%`, background: phase_colour(one.name) }} />))}</p>
        <p id="covered">Rank {first.rank}: {covered.map((one) => `${one.name} ${share_words(one.share)}`).join(" · ")}</p></>}
      <p class="tools"><label>Filter <input type="search" value={filter} placeholder="forward|phase" onInput={(event) => set_filter(event.currentTarget.value)} /></label></p>
      <WideTable label="Spans in this time" kind="grid"><thead><tr><th scope="col">span</th><th scope="col">lane</th><th scope="col">calls</th><th scope="col">time</th><th scope="col">each</th><th scope="col">share</th></tr></thead>
        <tbody>{rows.slice(0, MOST_EVENTS).map(({ lane, share, name }) => (
          <tr key={`${lane.rank} ${lane.track} ${name}`} data-name={name} data-rank={lane.rank} data-track={lane.track}><th scope="row"><i class="swatch" style={{ background: phase_colour(name) }} /> {name}</th><td>rank {lane.rank} {lane.track}</td><td>{share.calls}</td>
            <td>{seconds_words(share.seconds)}</td><td>{seconds_words(share.seconds / share.calls)}</td><td>{share_words(share.share)}</td></tr>))}</tbody></WideTable>
      {rows.length > MOST_EVENTS && <p class="dim">{rows.length - MOST_EVENTS} more: narrow the filter.</p>}
      <p class="dim">A share is that of the time in which at least one span of the name runs; spans are cut at the edges.</p>
    </section>
  );
}

function SystemStrip({ uid, view }: { uid: string; view: Spans }) {
  const run = `/runs/${encodeURIComponent(uid)}`;
  const [at, point] = useState<number | null>(null);
  const nodes = useAsked<Nodes>(`${run}/nodes`, 0).answer;
  const node = nodes?.items[0]?.node;
  const name = encodeURIComponent("(system\\.cpu\\.(busy|iowait)|hw\\.gpu\\.utilization)\\{mean\\}");
  const lo = Math.floor(view.from / 1000);
  const hi = Math.max(lo + 1000, Math.ceil(view.to / 1000));
  const { answer } = useAsked<SystemAnswer>(node ? `${run}/system?node=${encodeURIComponent(exactly([node]))}&from=${lo}&to=${hi}&points=600&name=${name}` : null, 0);
  if (!nodes || (nodes.items.length > 0 && !answer)) return null;
  const all = answer?.series.filter((one) => one.x0.length > 0) ?? [];
  const words: Record<string, string> = { "system.cpu.busy": "CPU", "system.cpu.iowait": "I/O wait", "hw.gpu.utilization": "GPU" };
  return (
    <section class="panel" id="system-strip"><h2>System{node && `, ${node}`}</h2>
      {all.length === 0 ? <p class="dim">No samples of a node in this time.</p> :
        <div class="charts"><TimeFigure form={SYSTEM} all={all} labels={all.map((one) => words[one.metric] ?? one.metric)} answer={answer!} at={at} point={point}
          zoom={(from, to) => (from === null || to === null ? set_queries({ b0: "", b1: "" }) : brush(from * 1000, to * 1000))} /></div>}
    </section>
  );
}

function Panels({ uid }: { uid: string }) {
  const turn = useSlow(turn_of(uid));
  const run = `/runs/${encodeURIComponent(uid)}`;
  const view = range_of("from", "to");
  const brushed = range_of("b0", "b1");
  const track = asked("track");
  const rank = asked("worker");
  const query = `${track ? `&track=${encodeURIComponent(exactly([track]))}` : ""}${rank ? `&worker=${encodeURIComponent(exactly([rank]))}` : ""}`;
  const lanes = useAsked<Spans>(`${run}/spans?cols=1200&limit=32&last=${LAST}${view ? `&from=${view.from}&to=${view.to}` : ""}${query}`, turn);
  const chosen = useAsked<Spans>(brushed ? `${run}/spans?cols=1&limit=32&from=${brushed.from}&to=${brushed.to}${query}` : null, turn);
  const answer = lanes.answer;
  const error = lanes.error ?? chosen.error;
  if (error instanceof Refused && error.status === 401) return null;
  const move = (from: number, to: number) => set_queries({ from: String(Math.max(0, Math.round(from))), to: String(Math.round(to)) });
  const wide = answer ? answer.to - answer.from : 0;
  return <>
    <section class="panel" id="lanes"><h2>{view ? "Time line" : `Time line of the last ${LAST} steps`}</h2>
      {error && <p class="fault" role="alert">{error.message}</p>}
      {answer && <p class="tools">
        <label>Track <select value={track} onChange={(event) => set_query("track", event.currentTarget.value)}><option value="">all</option>{answer.tracks.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
        <label>Rank <select value={rank} onChange={(event) => set_query("worker", event.currentTarget.value)}><option value="">all</option>{answer.workers.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
        <button type="button" onClick={() => move(answer.from - wide / 2, answer.from + wide / 2)}>Pan left</button>
        <button type="button" onClick={() => move(answer.from + wide / 2, answer.to + wide / 2)}>Pan right</button>
        {brushed && <button type="button" onClick={() => set_queries({ from: String(brushed.from), to: String(brushed.to), b0: "", b1: "" })}>Zoom to the chosen span</button>}
        {brushed && <button type="button" onClick={() => set_queries({ b0: "", b1: "" })}>Choose nothing</button>}
        {view && <button type="button" onClick={() => set_queries({ from: "", to: "" })}>Last {LAST} steps</button>}</p>}
      {answer && answer.lanes.length > 0 && <LanesFigure answer={answer} brushed={brushed} />}
      {answer && answer.lanes.length === 0 && <p class="dim">{answer.spans_gone ? "Older spans of this run are gone: by their age (store.keep.spans), or because curves.db was larger than insights.max_curve_bytes." : answer.tracks.length > 0 ? "No span in this time." : <>This run sends no spans. A loop of your own marks them by <code>with hook.phase("forward"):</code></>}</p>}
      {answer && answer.left_out > 0 && <p class="dim">{answer.left_out} more lanes are not drawn: choose a rank or a track.</p>}
      {answer?.cut && <p class="fault">There are more than a million spans in this time: those behind are not drawn.</p>}
    </section>
    {answer && answer.lanes.length > 0 && <SharesPanel answer={(brushed && chosen.answer) || answer} brushed={brushed && chosen.answer ? brushed : null} />}
    {answer && answer.lanes.length > 0 && <SystemStrip uid={uid} view={answer} />}
    <StepTimesPanel uid={uid} last={LAST} />
  </>;
}

export function TimelineScreen({ uid }: { uid: string }) {
  return (
    <Asked<RunPage> name={`/runs/${uid}`} load={() => ask(`/runs/${encodeURIComponent(uid)}`)}>{(answer) => {
      document.title = `${answer.run.job ?? answer.run.uid}: time line · Tocsin`;
      return <><Head run={answer.run} at="timeline" /><Panels uid={answer.run.uid} /></>;
    }}</Asked>
  );
}
