// A person asks a running job for more: captures, a trace, where its ranks stand. Each rank's answer is shown when it comes.
import { useEffect, useState } from "preact/hooks";
import { Form, type Deed } from "./act";
import { ask, tell, type RunRow, type Status } from "./api";
import { Panel } from "./parts";
import { is_paused } from "./paused";
import { changed } from "./stream";

interface Asked { command_id: string; action: string; state: string; detail: string; cautions: string[] }
interface Answer { rank: number; worker: string | null; phase: string; step: number; effective_step: number | null; reason: string | null }
interface Command { command_id: string; answers: Answer[] }

const COLLECTIONS = ["gradients", "weights", "biases", "losses", "metrics", "outputs", "layers", "optimizer_variables"];
const KINDS = { capture: "Capture more", trace: "Trace steps", stacks: "Where does it stand?", pause: "Pause captures", resume: "Resume captures", end: "End what I asked for" } as const;
type Kind = keyof typeof KINDS;
const SAYS: Partial<Record<Kind, string>> = {
  stacks: "Each rank answers with the stacks of its threads and its last collective operations.",
  pause: "No tensors are captured until somebody resumes. Steps, losses and the heartbeat go on.",
  resume: "Captures begin again, whoever paused them.",
  end: "Captures that you asked for here end. Those of the run, of rules and of others go on.",
};
const ANSWER_SECONDS = 120;

interface Fields { collections: string[]; statistics: string; raw: boolean; from: string; steps: string; ranks: string; reason: string }
const BLANK: Fields = { collections: ["gradients"], statistics: "", raw: false, from: "", steps: "", ranks: "", reason: "" };
const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

// "0, 2-4": null: that is no list of ranks.
function ranks_of(text: string): number[] | null {
  const out: number[] = [];
  for (const one of words(text)) {
    const found = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(one);
    if (!found) return null;
    const [first, last] = [Number(found[1]), Number(found[2] ?? found[1])];
    if (last < first || last - first > 4096) return null;
    for (let rank = first; rank <= last; rank += 1) out.push(rank);
  }
  return out;
}

const number = (text: string) => (text.trim() === "" ? undefined : Number(text));
const whole = (text: string) => text.trim() === "" || /^\d+$/.test(text.trim());

function body_of(kind: Kind, fields: Fields, attempt: number) {
  const about = { attempt, ranks: ranks_of(fields.ranks) ?? [], reason: fields.reason.trim() };
  const steps = { from_step: number(fields.from), steps: number(fields.steps) };
  if (kind === "capture") return { ...about, ...steps, collections: fields.collections, statistics: words(fields.statistics), raw: fields.raw };
  if (kind === "trace") return { ...about, ...steps, kind };
  if (kind === "stacks") return { ...about, kind };
  return { attempt, [kind]: true, reason: about.reason };
}

const path_of = (kind: Kind, uid: string) => `/runs/${uid}/${kind === "trace" || kind === "stacks" ? "profile" : "capture"}`;
const is_ready = (kind: Kind, fields: Fields) => whole(fields.from) && whole(fields.steps) && ranks_of(fields.ranks) !== null && (kind !== "capture" || fields.collections.length > 0);

// What would be asked, and what to know before: as the server says it.
function Preview({ kind, fields, run }: { kind: Kind; fields: Fields; run: RunRow }) {
  const body = JSON.stringify(body_of(kind, fields, run.attempt));
  const ready = is_ready(kind, fields);
  const [said, set_said] = useState<Asked | null>(null);
  const [why, set_why] = useState("");
  useEffect(() => {
    if (!ready) return undefined;
    let left = false;
    const due = window.setTimeout(() => {
      tell<Asked>(`${path_of(kind, run.uid)}?dry_run=true`, JSON.parse(body), "").then(
        (answer) => { if (!left) { set_said(answer); set_why(""); } }, (error: Error) => { if (!left) set_why(error.message); });
    }, 300);
    return () => { left = true; window.clearTimeout(due); };
  }, [body, kind, ready]);
  return (
    <div class="preview" aria-live="polite">
      {why ? <p class="fault">{why}</p> : said && <p class="dim">{said.detail.replace("; nothing was written", "")}</p>}
      {said && said.cautions.length > 0 && <ul class="cautions">{said.cautions.map((one) => <li key={one}>{one}</li>)}</ul>}
    </div>);
}

function Choice({ kind, fields, set, run }: { kind: Kind; fields: Fields; set: (fields: Fields) => void; run: RunRow }) {
  const text = (name: "statistics" | "from" | "steps" | "ranks" | "reason", label: string, hint: string, mode: "text" | "numeric" = "text") => (
    <label>{label} <input value={fields[name]} placeholder={hint} inputMode={mode} name={name}
      onInput={(event) => set({ ...fields, [name]: event.currentTarget.value })} /></label>);
  const has_steps = kind === "capture" || kind === "trace";
  return (
    <>
      {SAYS[kind] && <p>{SAYS[kind]}</p>}
      {kind === "capture" && <fieldset class="choices"><legend>What to capture</legend>{COLLECTIONS.map((name) => (
        <label key={name} class="check"><input type="checkbox" checked={fields.collections.includes(name)}
          onChange={(event) => set({ ...fields, collections: event.currentTarget.checked ? [...fields.collections, name] : fields.collections.filter((one) => one !== name) })} /> {name.replace("_", " ")}</label>))}
        <label class="check"><input type="checkbox" checked={fields.raw} onChange={(event) => set({ ...fields, raw: event.currentTarget.checked })} /> all elements</label></fieldset>}
      {kind === "capture" && text("statistics", "More statistics", "none, or quantiles, histogram")}
      {has_steps && text("from", "From step", "the current one", "numeric")}
      {has_steps && text("steps", "Number of steps", "1", "numeric")}
      {(has_steps || kind === "stacks") && run.world_size > 1 && text("ranks", "Ranks", "all, or 0, 2-3")}
      {text("reason", "Why?", "may be left empty")}
      <Preview kind={kind} fields={fields} run={run} />
    </>);
}

// "received" is the process's word, not yet that of the loop; a trace is there only once it has ended.
const is_final = (kind: Kind, one: Answer) => one.phase === "refused" || one.phase === "ended" || (one.phase === "applied" && kind !== "trace");

function phase_words(kind: Kind, one: Answer): string {
  if (one.phase === "received") return "received, not answered yet";
  if (one.phase === "ended" && kind === "trace") return "sent";
  if (one.phase !== "refused" && kind === "stacks") return "answered";
  if (one.phase === "ended" && one.effective_step !== null) return `captured, over at step ${one.effective_step}`;
  return one.phase === "applied" && one.effective_step !== null ? `applied from step ${one.effective_step}` : one.phase;
}

function Answers({ asked, kind, ranks, run }: { asked: Asked; kind: Kind; ranks: number[]; run: RunRow }) {
  const [answers, set_answers] = useState<Answer[]>([]);
  const [late, set_late] = useState(false);
  const silent = ranks.filter((rank) => !answers.some((one) => one.rank === rank && one.phase !== "received"));
  const over = ranks.every((rank) => answers.some((one) => one.rank === rank && is_final(kind, one)));
  useEffect(() => {
    if (over) return undefined;
    const began = Date.now();
    const look = () => ask<{ items: Command[] }>(`/commands?run=${run.uid}&action=${encodeURIComponent(asked.action)}&limit=20`).then(
      (all) => set_answers(all.items.find((one) => one.command_id === asked.command_id)?.answers ?? []), () => undefined);
    const turn = window.setInterval(() => {
      if (Date.now() - began > ANSWER_SECONDS * 1000) { set_late(true); window.clearInterval(turn); } else if (!is_paused()) void look();
    }, 1000);
    return () => window.clearInterval(turn);
  }, [asked.command_id, over]);
  const named = silent.length > 8 ? `${silent.slice(0, 8).join(", ")} and ${silent.length - 8} more` : silent.join(", ");
  return (
    <div class="answers" role="status">
      <p>{asked.detail}. {ranks.length - silent.length} of {ranks.length} {ranks.length === 1 ? "rank has" : "ranks have"} answered.
        {silent.length > 0 && ` ${silent.length === 1 ? "Rank" : "Ranks"} ${named} ${silent.length === 1 ? "has" : "have"} not answered${late ? ` within ${ANSWER_SECONDS} s. A rank answers at its next step` : ""}.`}</p>
      <ul class="lines">{answers.filter((one) => ranks.includes(one.rank)).map((one) => (
        <li key={one.rank}><b>rank {one.rank}</b>{one.worker && <span class="dim"> {one.worker}</span>}:{" "}
          <span class={one.phase === "refused" ? "bad" : one.phase === "received" ? "dim" : "good"}>{phase_words(kind, one)}</span>
          {one.reason && <pre>{one.reason}</pre>}
          {one.phase === "refused" && one.reason?.startsWith("too_late") && <p>The step had begun. Ask again: it is now known where this rank is.</p>}</li>))}</ul>
    </div>);
}

export function CapturePanel({ run }: { run: RunRow }) {
  const [who, set_who] = useState<Status | null>(null);
  const [open, set_open] = useState<Kind | "">("");
  const [fields, set_fields] = useState(BLANK);
  const [asked, set_asked] = useState<{ asked: Asked; kind: Kind; ranks: number[] } | null>(null);
  useEffect(() => { ask<Status>("/status").then(set_who, () => set_who(null)); }, [changed.value]);
  if (run.state !== "running") return null;
  const deed = (kind: Kind): Deed => ({
    id: kind, title: KINDS[kind], role: "operator", button: KINDS[kind], ready: () => is_ready(kind, fields),
    fields: () => <Choice kind={kind} fields={fields} set={set_fields} run={run} />,
    go: async (_text, once) => {
      const answer = await tell<Asked>(path_of(kind, run.uid), body_of(kind, fields, run.attempt), once);
      const named = kind === "pause" ? [] : ranks_of(fields.ranks) ?? [];
      const all = Array.from({ length: Math.max(1, run.world_size) }, (_one, rank) => rank);
      set_asked({ asked: answer, kind, ranks: named.length > 0 ? [...new Set(named)] : all });
      return "";
    },
  });
  return (
    <Panel title="Ask the run for more" id="capture">
      <p class="deeds">{(Object.keys(KINDS) as Kind[]).map((kind) => (
        <button key={kind} type="button" aria-expanded={open === kind} onClick={() => set_open(open === kind ? "" : kind)}>{KINDS[kind]}</button>))}</p>
      {open && <Form key={open} deed={deed(open)} who={who} done={() => set_open("")} close={() => set_open("")} />}
      {asked && (asked.asked.state === "withdrawn" ? <p role="status">{asked.asked.detail}.</p>
        : <Answers key={asked.asked.command_id} asked={asked.asked} kind={asked.kind} ranks={asked.ranks} run={run} />)}
    </Panel>
  );
}
