// What people say of an issue once they have looked at it: useful, noise or known, and notes.
import { useEffect, useState } from "preact/hooks";
import { Form, note, type Deed } from "./act";
import { ask, tell, type IssuePage, type Status, type Verdict } from "./api";
import { Moment, Panel, issue_path } from "./parts";
import { changed } from "./stream";

const MEANS: Record<Verdict["verdict"], string> = {
  useful: "it was right to tell",
  noise: "it was not worth telling",
  known: "it was right, and no news",
};
const WORDS = ["useful", "noise", "known"] as const;
const title_of = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

function verdict_deed(path: string, word: Verdict["verdict"]): Deed {
  return {
    id: word, title: title_of(word), role: "operator", button: `Say: ${word}`, ready: () => true,
    fields: (text, set) => <><p>{title_of(word)}: {MEANS[word]}. It counts for the rule.</p>{note("Why? May be left empty")(text, set)}</>,
    go: async (text, once) => {
      await tell(`${path}/verdict`, { verdict: word, ...(text.trim() && { note: text.trim() }) }, once);
      return "";
    },
  };
}

function take_back_deed(path: string): Deed {
  return {
    id: "back", title: "Take back", role: "operator", button: "Take the verdict back", ready: () => true,
    fields: () => <p>The issue counts for its rule as one that nobody has judged.</p>,
    go: async (_text, once) => {
      await tell(`${path}/verdict`, undefined, once, "DELETE");
      return "The verdict is taken back.";
    },
  };
}

function note_deed(path: string): Deed {
  return {
    id: "note", title: "Note", role: "operator", button: "Add the note", ready: (text) => text.trim() !== "",
    fields: (text, set) => <label>What did you find? <textarea rows={3} value={text} onInput={(event) => set(event.currentTarget.value)} /></label>,
    go: async (text, once) => {
      await tell(`${path}/notes`, { text: text.trim() }, once);
      return "";
    },
  };
}

export function Feedback({ answer }: { answer: IssuePage }) {
  const { issue, verdict, notes } = answer;
  const path = issue_path(issue);
  const [who, set_who] = useState<Status | null>(null);
  const [open, set_open] = useState("");
  const [told, set_told] = useState("");
  useEffect(() => { ask<Status>("/status").then(set_who, () => set_who(null)); }, [changed.value]);
  const deeds = [...WORDS.map((word) => verdict_deed(path, word)), note_deed(path), ...(verdict ? [take_back_deed(path)] : [])];
  const chosen = deeds.find((one) => one.id === open);
  const done = (sentence: string) => { set_told(sentence); set_open(""); changed.value += 1; };
  return (
    <Panel title="Was it worth telling?" id="feedback">
      {verdict ? <p class="words"><b>{title_of(verdict.verdict)}</b>, says <b>{verdict.by}</b>, <Moment at={verdict.at} />{verdict.note && `: ${verdict.note}`}</p>
        : <p class="dim">Nobody has said so far.</p>}
      <p class="deeds">{deeds.map((one) => (
        <button key={one.id} type="button" aria-expanded={open === one.id} title={MEANS[one.id as Verdict["verdict"]]}
          class={verdict?.verdict === one.id ? "main" : ""}
          onClick={() => { set_told(""); set_open(open === one.id ? "" : one.id); }}>{one.title}</button>))}</p>
      {chosen && <Form key={chosen.id} deed={chosen} who={who} done={done} close={() => set_open("")} />}
      <p role="status">{told}</p>
      {notes.length > 0 && <ul class="lines" aria-label="Notes">{notes.map((one) => (
        <li key={one.id} class="words">{one.text} <span class="dim">{one.by}, <Moment at={one.at} /></span></li>))}</ul>}
    </Panel>
  );
}
