// The attempts of a run: where each goes on, as marks and as stretches of a chart, by step and by the clock.
import type { AttemptRow } from "./api";
import { clock, clock_words } from "./clock";
import type { Restart } from "./curve_data";
import type { Mark } from "./marks";

// A part of the x of a chart that is of one attempt. `text`: what a person calls it.
export interface Stretch { from: number; to: number; text: string }

const ENDED: Record<string, string> = { completed: "completed", failed: "failed", stopped_by_rule: "was stopped by a rule", stopped_by_person: "was stopped by a person", interrupted: "was interrupted", lost: "was lost" };

// "the one before failed with exit code 1"
const before_words = (reason: string | null, exit_code: number | null) => (reason === null ? "nobody said how the one before ended" :
  `the one before ${ENDED[reason] ?? `ended: ${reason.replaceAll("_", " ")}`}${exit_code === null ? "" : ` with exit code ${exit_code}`}`);
const size_words = (ranks: number | null) => (ranks === null ? "" : ` with ${ranks} ${ranks === 1 ? "rank" : "ranks"}`);
const called = (number: number | null) => (number === null ? "a later attempt" : `attempt ${number}`);

// "attempt 2 goes on from here with 4 ranks; the one before failed with exit code 1; 50 steps are done again"
function restart_words(one: Restart): string {
  const again = one.again > 0 ? `; ${one.again} ${one.again === 1 ? "step is" : "steps are"} done again` : "";
  return `${called(one.number)} goes on from here${size_words(one.world_size)}; ${before_words(one.reason, one.exit_code)}${again}`;
}

// Where later attempts begin, of the steps of one mode.
export const restart_marks = (restarts: Restart[], mode: string, uid: string): Mark[] =>
  restarts.filter((one) => one.mode === mode).map((one) => ({ x: one.step, kind: "restart", text: `step ${one.step}: ${restart_words(one)}`, to: `/runs/${uid}/history` }));

// Which attempt has which steps of one mode; none if there is only one. What a later attempt did again is the later one's.
export function stretches_of_steps(restarts: Restart[], mode: string): Stretch[] {
  const all = restarts.filter((one) => one.mode === mode).sort((a, b) => a.step - b.step);
  if (all.length === 0) return [];
  const first = { from: -Infinity, to: all[0]!.step, text: all[0]!.before === null ? "attempts before" : called(all[0]!.before) };
  return [first, ...all.map((one, at) => ({ from: one.step, to: all[at + 1]?.step ?? Infinity, text: called(one.number) }))].filter((one) => one.to > one.from);
}

const time_of = (text: string | null) => (text === null ? NaN : Date.parse(text));

// When later attempts began.
export function restart_times(attempts: AttemptRow[], uid: string): Mark[] {
  return attempts.slice(1).flatMap((one, at) => {
    const x = time_of(one.started_at);
    const before = attempts[at]!;
    return Number.isNaN(x) ? [] : [{ x, kind: "restart" as const, to: `/runs/${uid}/history`,
      text: `${clock_words(x)}: ${called(one.number)} begins${size_words(one.world_size)}; ${before_words(before.outcome, before.exit_code)}` }];
  });
}

// When each attempt ran, until it ended or the next one began; none if there is only one. Between them nothing ran.
export function stretches_of_time(attempts: AttemptRow[]): Stretch[] {
  const all = attempts.filter((one) => one.started_at !== null);
  if (all.length < 2) return [];
  return all.map((one, at) => {
    const next = at + 1 < all.length ? time_of(all[at + 1]!.started_at) : Infinity;
    return { from: time_of(one.started_at), to: one.ended_at === null ? next : Math.min(next, time_of(one.ended_at)), text: called(one.number) };
  });
}

// The stretch that a point is in, in brackets behind what is read there. `width`: what the point stands for.
export function attempt_at(stretches: Stretch[], x: number, width: number): string {
  const found = stretches.find((one) => x + width > one.from && x < one.to);
  return found ? ` (${found.text})` : "";
}

// "Attempt 1 up to step 99, attempt 2 from step 100 on." `time`: x is milliseconds.
export function stretches_words(stretches: Stretch[], time: boolean): string {
  const said = stretches.map(({ from, to, text }) => {
    if (time) return `${text} from ${clock(from)}${to === Infinity ? " on" : ` to ${clock(to)}`}`;
    return from === -Infinity ? `${text} up to step ${to - 1}` : `${text} from step ${from}${to === Infinity ? " on" : ` to ${to - 1}`}`;
  }).join(", ");
  return said && `${said[0]!.toUpperCase()}${said.slice(1)}.`;
}
