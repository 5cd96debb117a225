// How the time of a run divides: initialization, training loop, finalization; and which operations took most of it.
import { useAsked } from "./curves";
import { JobBand, type JobTimes } from "./job_band";
import { Moment } from "./parts";
import { phase_colour, seconds_words, share_words } from "./phase_colours";
import { useSlow } from "./slow";
import { turn_of } from "./stream";

interface Phases extends JobTimes {
  loop_start: string | null; loop_end: string | null; seconds: number | null;
  initialization: number | null; training_loop: number | null; interrupted: number; finalization: number | null;
}
interface Operation { device: string; name: string; calls: number; seconds: number; share: number }
interface Operations { spans: number; cut: boolean; items: Operation[] }
type Part = { name: string; word: string; seconds: number };

function parts_of(answer: Phases): Part[] {
  return ([["initialization", "Initialization", answer.initialization], ["forward", "Training loop", answer.training_loop],
    ["data_wait", "Interrupted", answer.interrupted || null], ["checkpoint", "Finalization", answer.finalization]] as [string, string, number | null][])
    .flatMap(([name, word, seconds]) => (seconds === null ? [] : [{ name, word, seconds }]));
}

// Slices as arcs; what has no time has no slice.
function Pie({ parts, whole }: { parts: Part[]; whole: number }) {
  let from = 0;
  return (
    <svg class="pie" viewBox="-1 -1 2 2" role="img" aria-label={parts.map((one) => `${one.word} ${share_words(one.seconds / whole)}`).join(", ")}>{parts.filter((one) => one.seconds > 0).map((one) => {
      const begin = from;
      from += one.seconds / whole;
      const place = (share: number) => `${Math.sin(share * 2 * Math.PI)} ${-Math.cos(share * 2 * Math.PI)}`;
      const path = one.seconds / whole > 0.9999 ? "M 0 -1 A 1 1 0 1 1 0 1 A 1 1 0 1 1 0 -1" : `M 0 0 L ${place(begin)} A 1 1 0 ${one.seconds / whole > 0.5 ? 1 : 0} 1 ${place(from)} Z`;
      return <path key={one.name} d={path} fill={phase_colour(one.name)} />;
    })}</svg>
  );
}

export function JobTimesPanel({ uid }: { uid: string }) {
  const turn = useSlow(turn_of(uid));
  const { answer } = useAsked<Phases>(`/runs/${encodeURIComponent(uid)}/phases`, turn);
  if (!answer) return null;
  const parts = parts_of(answer);
  const whole = parts.reduce((sum, one) => sum + one.seconds, 0);
  const row = (word: string, value: preact.ComponentChildren) => <tr><th scope="row">{word}</th><td>{value}</td></tr>;
  const running = <span class="dim">running</span>;
  return (
    <section class="panel" id="job-times"><h2>Time of the job</h2>
      <JobBand uid={uid} answer={answer} />
      {whole > 0 && <div class="pie-row"><Pie parts={parts} whole={whole} />
        <ul class="lines">{parts.map((one) => <li key={one.name} data-part={one.word}><i class="swatch" style={{ background: phase_colour(one.name) }} /> {one.word}: {seconds_words(one.seconds)}, {share_words(one.seconds / whole)}</li>)}</ul></div>}
      {answer.loop_start === null && <p class="dim">No step has ended: how the time divides is not known.</p>}
      <table class="facts-table"><tbody>{row("Start", <Moment at={answer.started_at} />)}{row("End", answer.ended_at ? <Moment at={answer.ended_at} /> : running)}
        {answer.seconds !== null && row("Duration", seconds_words(answer.seconds))}
        {answer.loop_start && row("Training loop began", <Moment at={answer.loop_start} />)}{answer.loop_end && row(answer.ended_at ? "Training loop ended" : "Last step ended", <Moment at={answer.loop_end} />)}</tbody></table>
    </section>
  );
}

export function OperationsPanel({ uid }: { uid: string }) {
  const turn = useSlow(turn_of(uid));
  const { answer } = useAsked<Operations>(`/runs/${encodeURIComponent(uid)}/operations`, turn);
  if (!answer) return null;
  return (
    <section class="panel" id="operations"><h2>Operations that take most time</h2>
      {answer.items.length === 0 && <p class="dim">This run has sent no operations: spans of the tracks <code>op.gpu/N</code> and <code>op.cpu</code>. <code>tocsin capture {uid} --trace 2</code> makes a trace of its next two steps, which Perfetto opens.</p>}
      {["GPU", "CPU"].map((device) => answer.items.filter((one) => one.device === device)).filter((all) => all.length > 0).map((all) => (
        <table class="grid narrow" key={all[0]!.device}><caption>{all[0]!.device}</caption><thead><tr><th scope="col">operation</th><th scope="col">share</th><th scope="col">time</th><th scope="col">calls</th></tr></thead>
          <tbody>{all.map((one) => <tr key={one.name} data-name={one.name}><th scope="row">{one.name}<span class="bar-of"><i style={{ flex: `0 0 ${one.share * 100}%`, background: phase_colour("forward") }} /></span></th><td>{share_words(one.share)}</td><td>{seconds_words(one.seconds)}</td><td>{one.calls}</td></tr>)}</tbody></table>))}
      {answer.cut && <p class="dim">Of the first {answer.spans} spans: there are more.</p>}
    </section>
  );
}
