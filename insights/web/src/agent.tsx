// How often the agent of a node samples, and what: what was asked of it, what it answered, and the form that asks.
import { useEffect, useState } from "preact/hooks";
import { Form, type Deed } from "./act";
import { ask, Refused, tell, type Status } from "./api";
import { useAsked } from "./curves";
import { Moment, Panel } from "./parts";
import { paused } from "./paused";
import { changed } from "./stream";

interface Asked { interval: string | null; collectors: string[] | null; until: string | null; by: string; at: string }
interface Answer { phase: "received" | "applied" | "ended" | "refused"; at: string; detail: string }
interface AgentPage { node: string; asked: Asked | null; answer: Answer | null }

const COLLECTORS = ["cpu", "memory", "network", "disk", "process", "container", "gpu"];
const LOOK_AGAIN = 1000;  // ms, until the agent has answered
const MOST_LOOKS = 60;

interface Fields { interval: string; collectors: string[]; lasts: string }
const fields_of = (asked: Asked | null): Fields => ({ interval: asked?.interval ?? "", collectors: asked?.collectors ?? [], lasts: "" });

function body_of({ interval, collectors, lasts }: Fields) {
  return { interval: interval.trim() || null, collectors: collectors.length > 0 ? collectors : null, for: lasts.trim() || null };
}

function Choice({ fields, set }: { fields: Fields; set: (fields: Fields) => void }) {
  const turn = (name: string, on: boolean) => set({ ...fields, collectors: on ? [...fields.collectors, name] : fields.collectors.filter((one) => one !== name) });
  return (
    <>
      <label>Interval <input value={fields.interval} name="interval" placeholder="as the agent's file says, or 100ms to 1m" onInput={(event) => set({ ...fields, interval: event.currentTarget.value })} /></label>
      <fieldset class="choices"><legend>Collectors; none chosen: as the agent's file says</legend>{COLLECTORS.map((name) => (
        <label key={name} class="check"><input type="checkbox" checked={fields.collectors.includes(name)} onChange={(event) => turn(name, event.currentTarget.checked)} /> {name}</label>))}</fieldset>
      <label>For how long? <input value={fields.lasts} name="for" placeholder="until somebody takes it back, or 10m" onInput={(event) => set({ ...fields, lasts: event.currentTarget.value })} /></label>
    </>);
}

function asked_words({ interval, collectors }: Asked): string {
  return [collectors && `collectors ${collectors.join(", ")}`, interval && `a sample every ${interval}`].filter(Boolean).join(", ");
}

function Standing({ asked, answer, late }: { asked: Asked | null; answer: Answer | null; late: boolean }) {
  if (!asked) return <p>Nothing is asked of it: it samples as its own file says.</p>;
  return <>
    <p>Asked: <b>{asked_words(asked)}</b>, by {asked.by}, <Moment at={asked.at} />{asked.until && <>, until <Moment at={asked.until} /></>}.</p>
    <p role="status" class={answer?.phase === "refused" ? "bad" : answer ? "" : "dim"}>{answer ? <>The agent answered <Moment at={answer.at} />: {answer.phase}, {answer.detail}.</>
      : late ? "The agent has not answered. It does so once it runs and reads the topics." : "The agent has not answered yet."}</p>
  </>;
}

export function AgentPanel({ node }: { node: string }) {
  const path = `/nodes/${encodeURIComponent(node)}/agent`;
  const [turn, set_turn] = useState(0);
  const [looks, set_looks] = useState(0);
  const [open, set_open] = useState("");
  const [who, set_who] = useState<Status | null>(null);
  const [fields, set_fields] = useState<Fields | null>(null);
  const { answer: page, error } = useAsked<AgentPage>(path, turn + changed.value, ask);
  const waits = page !== null && page.asked !== null && page.answer === null;
  useEffect(() => { if (open) ask<Status>("/status").then(set_who, () => set_who(null)); }, [open, changed.value]);
  useEffect(() => {
    if (!waits || looks >= MOST_LOOKS || paused.value !== null) return undefined;
    const due = window.setTimeout(() => { set_looks(looks + 1); set_turn(turn + 1); }, LOOK_AGAIN);
    return () => window.clearTimeout(due);
  }, [waits, looks, paused.value]);
  if (error) return error instanceof Refused && (error.status === 401 || error.status === 404) ? null : <p class="fault" role="alert">{error.message}</p>;
  if (!page) return null;
  const now = fields ?? fields_of(page.asked);
  const deed = (id: string): Deed => ({
    id, title: id === "change" ? "Change what it samples" : "Take it back", role: "operator", button: id === "change" ? "Ask the agent" : "Take it back",
    ready: () => id !== "change" || now.interval.trim() !== "" || now.collectors.length > 0,
    fields: () => (id === "change" ? <Choice fields={now} set={set_fields} /> : <p>The agent then samples as its own file says.</p>),
    go: async (_text, once) => {
      await tell(path, id === "change" ? body_of(now) : {}, once, "PUT");
      return "";
    },
  });
  const done = () => { set_open(""); set_fields(null); set_looks(0); set_turn(turn + 1); };
  return (
    <Panel title="What its agent samples" id="agent">
      <Standing asked={page.asked} answer={page.answer} late={looks >= MOST_LOOKS} />
      <p class="deeds">{["change", ...(page.asked ? ["back"] : [])].map((id) => (
        <button key={id} type="button" aria-expanded={open === id} onClick={() => set_open(open === id ? "" : id)}>{deed(id).title}</button>))}</p>
      {open && <Form key={open} deed={deed(open)} who={who} done={done} close={() => set_open("")} />}
    </Panel>
  );
}
