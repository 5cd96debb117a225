// What a run was doing when, as one band from its start to its end: a click shows the nodes at that time.
import { clock_words } from "./clock";
import { phase_colour, seconds_words } from "./phase_colours";
import { go } from "./place";

export interface Loop { attempt: number; loop_start: string; loop_end: string }
export interface JobTimes { started_at: string | null; ended_at: string | null; as_of: string; attempts: Loop[] }
interface Block { kind: "initialization" | "loop" | "interrupted" | "finalization"; word: string; from: number; to: number }

// In the order of time; what took no time is none.
export function blocks_of(answer: JobTimes): Block[] {
  const loops = answer.attempts.map((one) => ({ ...one, from: Date.parse(one.loop_start), to: Date.parse(one.loop_end) }));
  const first = loops[0];
  const last = loops[loops.length - 1];
  if (!first || !last) return [];
  const out: Block[] = [];
  const add = (kind: Block["kind"], word: string, from: number, to: number) => { if (to > from) out.push({ kind, word, from, to }); };
  if (answer.started_at) add("initialization", "Initialization", Date.parse(answer.started_at), first.from);
  let reached = first.from;
  loops.forEach((one, at) => {
    add("interrupted", "Interrupted", reached, one.from);
    const end = at === loops.length - 1 && !answer.ended_at ? Math.max(one.to, Date.parse(answer.as_of)) : one.to;
    add("loop", loops.length > 1 ? `Training loop of attempt ${at + 1}` : "Training loop", Math.max(reached, one.from), end);
    reached = Math.max(reached, end);
  });
  if (answer.ended_at) add("finalization", "Finalization", reached, Date.parse(answer.ended_at));
  return out;
}

const COLOURS = { initialization: phase_colour("initialization"), loop: phase_colour("forward"), interrupted: "", finalization: phase_colour("checkpoint") };
const said = (one: Block) => `${one.word}: ${clock_words(one.from)} to ${clock_words(one.to)}, ${seconds_words((one.to - one.from) / 1000)}`;

export function JobBand({ uid, answer }: { uid: string; answer: JobTimes }) {
  const blocks = blocks_of(answer);
  if (blocks.length === 0) return null;
  const nodes_at = (one: Block) => `/runs/${encodeURIComponent(uid)}/nodes?from=${Math.floor(one.from)}&to=${Math.ceil(one.to)}`;
  return (
    <div class="job-band" role="img" aria-label={`What the run was doing when. ${blocks.map(said).join(". ")}.`}>{blocks.map((one) => (
      <i key={one.from} class={one.kind} title={`${said(one)}. A click shows the nodes then.`} data-kind={one.kind} data-seconds={((one.to - one.from) / 1000).toFixed(3)}
        style={{ flexGrow: String(one.to - one.from), ...(COLOURS[one.kind] && { background: COLOURS[one.kind] }) }} onClick={() => go(nodes_at(one))} />))}</div>
  );
}
