// What a person can do about an issue from its page: acknowledge, silence, say yes or no to a stop, stop the run.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, Refused, tell, type Issue, type IssuePage, type RunRow, type Status, type WaitingStop } from "./api";
import { Panel, SignIn } from "./parts";
import { SilencedBy } from "./silenced";
import { changed } from "./stream";

const LADDER = ["viewer", "operator", "stopper", "admin"];
const may = (who: Status | null, role: string) =>
  who !== null && LADDER.indexOf(who.who.role) >= LADDER.indexOf(role);

export interface Deed {
  id: string; title: string; role: string; button: string; danger?: boolean;
  fields: (text: string, set: (text: string) => void) => ComponentChildren;
  ready: (text: string) => boolean;
  text?: string;  // that stands there at first
  go: (text: string, once: string) => Promise<string>;
}

const names = (labels: Record<string, string>, wanted: string[]) =>
  wanted.filter((name) => labels[name]).map((name) => `${name}="${labels[name]}"`);

function silence_body(issue: Issue, comment: string) {
  const matchers = issue.run ? [`run_uid="${issue.run.uid}"`, `rule="${issue.rule}"`]
    : [`rule="${issue.rule}"`, ...names(issue.labels, ["job", "node", "worker"])];
  return { matchers, duration: "2h", comment };
}

interface Preview { matching_count: number }

export const note = (label: string) => (text: string, set: (text: string) => void) => (
  <label>{label} <input value={text} onInput={(event) => set(event.currentTarget.value)} /></label>);

function ack_deed(issue: Issue): Deed {
  return {
    id: "ack", title: "Acknowledge", role: "operator", button: "Acknowledge", ready: (text) => text.trim() !== "",
    fields: note("What are you doing about it?"),
    go: async (text, once) => {
      await tell("/acks", { what: issue.event_id, note: text.trim() }, once);
      return "Acknowledged: reminders and escalation stop until it gets worse.";
    },
  };
}

function silence_deed(issue: Issue): Deed {
  return {
    id: "silence", title: "Silence for 2 h", role: "operator", button: "Silence", ready: (text) => text.trim() !== "",
    fields: (text, set) => <><Matches issue={issue} />{note("Why?")(text, set)}</>,
    go: async (text, once) => {
      await tell("/silences", silence_body(issue, text.trim()), once);
      return "Silenced for two hours: nobody is told of it until then.";
    },
  };
}

function stop_deed(run: RunRow): Deed {
  const name = run.job || run.uid.slice(0, 8);
  return {
    id: "stop", title: "Stop the run", role: "stopper", button: "Save a checkpoint and stop", danger: true,
    ready: (text) => text === name,
    fields: (text, set) => (
      <>
        <p>{name}, attempt {run.attempt}, {run.world_size} {run.world_size === 1 ? "rank" : "ranks"}
          {run.step !== null && <>, at step {run.step}</>}, saves a checkpoint where the script does, and ends.</p>
        {note(`Type ${name} to confirm`)(text, set)}
      </>),
    go: async (_text, once) => {
      const answer = await tell<{ detail: string }>(`/runs/${run.uid}/stop`,
        { attempt: run.attempt, reason: "asked for on the page of an issue" }, once);
      return `${answer.detail}. What comes of it stands under "What was done".`;
    },
  };
}

// How a silence that is to be made would read, and what it would hold back now.
function Matches({ issue }: { issue: Issue }) {
  const body = silence_body(issue, "preview");
  const [found, set_found] = useState("");
  useEffect(() => {
    tell<Preview>("/silences?preview=true", body, "").then(
      ({ matching_count: count }) => set_found(`matches ${count} open ${count === 1 ? "issue" : "issues"} now`),
      (why: Error) => set_found(why.message));
  }, [issue.key]);
  return <p><code>{body.matchers.join(" ")}</code> <span class="dim">{found}</span></p>;
}

function sign_in_words(who: Status | null, role: string): string {
  if (who?.token_file) return `This needs a token. On this machine it stands in ${who.token_file}.`;
  const now = who?.who.name && who.who.name !== "local" ? `${who.who.name} is ${who.who.role}. ` : "";
  return `${now}This needs a token with the role ${role} (http.auth.tokens).`;
}

const new_key = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export function Form({ deed, who, done, close }: { deed: Deed; who: Status | null; done: (told: string) => void; close: () => void }) {
  const [text, set_text] = useState(deed.text ?? "");
  const [why, set_why] = useState("");
  const [busy, set_busy] = useState(false);
  const [once, set_once] = useState(new_key);
  if (!may(who, deed.role)) {
    return <SignIn done={() => { changed.value += 1; }}
      says={sign_in_words(who, deed.role)} />;
  }
  const send = (event: Event) => {
    event.preventDefault();
    set_busy(true);
    deed.go(text, once).then(done, (error: Error) => {
      set_why(error.message);
      set_busy(false);
      if (error instanceof Refused && error.status < 500) set_once(new_key());  // nothing was done: what is sent next is another request
    });
  };
  return (
    <form class="deed" onSubmit={send} aria-label={deed.title}>
      {deed.fields(text, set_text)}
      <p><button type="submit" class={deed.danger ? "danger" : "main"} disabled={busy || !deed.ready(text)}>{deed.button}</button>{" "}
        <button type="button" onClick={close}>Not now</button></p>
      {why && <p class="fault words" role="alert">{why}</p>}
    </form>
  );
}

function Waiting({ stop, who, done }: { stop: WaitingStop; who: Status | null; done: (told: string) => void }) {
  const [open, set_open] = useState("");
  const deed = (word: "approve" | "cancel"): Deed => ({
    id: word, title: word === "approve" ? "Approve the stop" : "Reject the stop", role: "stopper", danger: word === "approve",
    button: word === "approve" ? "Approve: the run is stopped" : "Reject: the run goes on", ready: () => true,
    fields: note("Comment"),
    go: async (text, once) => (await tell<{ detail: string }>(`/stops/${stop.command_id}/${word}`, { comment: text }, once)).detail,
  });
  return (
    <div class="waiting">
      <p><b>A stop waits for approval</b>{stop.reason && <>: {stop.reason}</>}</p>
      <p>{(["approve", "cancel"] as const).map((word) => (
        <><button type="button" aria-expanded={open === word} onClick={() => set_open(open === word ? "" : word)}>{deed(word).title}</button>{" "}</>))}</p>
      {open && <Form key={open} deed={deed(open as "approve" | "cancel")} who={who} done={done} close={() => set_open("")} />}
    </div>
  );
}

export function Act({ answer }: { answer: IssuePage }) {
  const { issue, run, stop } = answer;
  const [who, set_who] = useState<Status | null>(null);
  const [waiting, set_waiting] = useState<WaitingStop[]>([]);
  const [open, set_open] = useState("");
  const [told, set_told] = useState("");
  useEffect(() => {
    ask<Status>("/status").then(set_who, () => set_who(null));
    ask<{ items: WaitingStop[] }>("/stops").then(
      (all) => set_waiting(all.items.filter((one) => one.run === run?.uid && one.state.startsWith("awaiting"))), () => set_waiting([]));
  }, [changed.value, issue.key]);
  const fires = issue.status === "firing";
  const deeds = [
    ...(fires && !issue.acked_by ? [ack_deed(issue)] : []),
    ...(fires && issue.silenced_by.length === 0 ? [silence_deed(issue)] : []),
    ...(run && run.state === "running" && (!stop || ["refused", "failed", "expired"].includes(stop.state)) && waiting.length === 0 ? [stop_deed(run)] : []),
  ];
  const chosen = deeds.find((one) => one.id === open);
  const done = (sentence: string) => { set_told(sentence); set_open(""); changed.value += 1; };
  const marks = [
    issue.acked_by && `Acknowledged by ${issue.acked_by}.`,
    (issue.inhibited_by ?? []).length > 0 && "Held back: another issue explains it (an inhibit rule).",
    (issue.muted_by ?? []).length > 0 && `Muted by ${(issue.muted_by ?? []).join(", ")}.`,
  ].filter(Boolean);
  if (deeds.length === 0 && waiting.length === 0 && marks.length === 0 && issue.silenced_by.length === 0 && !told) return null;
  return (
    <Panel title="Act" id="act">
      {marks.map((one) => <p key={one as string}>{one}</p>)}
      <SilencedBy ids={issue.silenced_by} />
      {waiting.map((one) => <Waiting key={one.command_id} stop={one} who={who} done={done} />)}
      {deeds.length > 0 && <p class="deeds">{deeds.map((one) => (
        <button key={one.id} type="button" aria-expanded={open === one.id} class={one.danger ? "danger" : ""}
          onClick={() => { set_told(""); set_open(open === one.id ? "" : one.id); }}>{one.title}</button>))}</p>}
      {chosen && <Form key={chosen.id} deed={chosen} who={who} done={done} close={() => set_open("")} />}
      <p role="status">{told}</p>
    </Panel>
  );
}
