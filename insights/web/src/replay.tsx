// Replay here: would the rule of this issue have fired with another value, or as somebody rewrites it? The run is judged again, as a task.
import { useEffect, useState } from "preact/hooks";
import { Form, type Deed } from "./act";
import { ask, tell, type Issue, type Status } from "./api";
import { Moment, Panel } from "./parts";
import { marks_of_replay, replay_sentences, replayed, type ReplayResult } from "./replay_marks";
import { changed } from "./stream";
import { WideTable } from "./wide_table";

interface Parameter { name: string; value: unknown; origin: string }
interface Parameters { parameters: Parameter[]; yaml: string | null }
interface Task { id: string; state: string; progress: number; error: string | null; result: ReplayResult | null }
type Tried = "values" | "yaml";

const is_swept = (one: Parameter) => ["number", "boolean", "string"].includes(typeof one.value);

function Result({ result, now }: { result: ReplayResult; now: string }) {
  const several = new Set(result.rows.map((row) => row.attempt)).size > 1;
  return (
    <>
      <WideTable label="Result of the replay" first_too>{now && <caption class="dim">{result.parameter} is now {now}</caption>}
        <thead><tr><th scope="col">{result.parameter}</th>{several && <th scope="col">Attempt</th>}<th scope="col">Fires?</th><th scope="col">First step</th><th scope="col">Issues</th><th scope="col">First time</th></tr></thead>
        <tbody>{result.rows.map((row) => (
          <tr key={`${row.attempt}/${row.value}`}><th scope="row">{row.value}</th>{several && <td>{row.attempt}</td>}<td class={row.issues > 0 ? "bad" : "good"}>{row.issues > 0 ? "yes" : "no"}</td>
            <td>{row.first_step ?? "–"}</td><td>{row.issues}</td><td><Moment at={row.first_time} /></td></tr>))}</tbody></WideTable>
      {replay_sentences(result).map((one) => <p key={one} class="said-of-replay">{one}</p>)}
      {result.gaps > 0 && <p>Records are missing at {result.gaps} {result.gaps === 1 ? "place" : "places"}: the table tells of what is left.</p>}
      {result.failed.map((one) => <p key={one.why} class="fault">{one.why}</p>)}
    </>);
}

function Progress({ id, now, of }: { id: string; now: string; of: string }) {
  const [task, set_task] = useState<Task | null>(null);
  const [why, set_why] = useState("");
  const over = why !== "" || (task !== null && task.state !== "running");
  useEffect(() => {
    if (over) return undefined;
    const look = () => ask<Task>(`/tasks/${id}`).then(set_task, (error: Error) => set_why(error.message));
    void look();
    const turn = window.setInterval(look, 500);
    return () => window.clearInterval(turn);
  }, [id, over]);
  const result = task?.result ?? null;
  useEffect(() => { if (result) replayed.value = { of, marks: marks_of_replay(result) }; }, [result !== null]);
  const cancel = () => tell(`/tasks/${id}`, undefined, "", "DELETE").then(() => undefined, (error: Error) => set_why(error.message));
  if (why || task?.error) return <p class="fault" role="alert">{why || task?.error}</p>;
  if (task?.state === "cancelled") return <p role="status">Cancelled.</p>;
  if (task?.state === "done") return result && <Result result={result} now={now} />;
  return <p role="status">The run is judged again: {Math.round((task?.progress ?? 0) * 100)} % <button type="button" onClick={cancel}>Cancel</button></p>;
}

export function ReplayPanel({ issue, run }: { issue: Issue; run: string }) {
  const [who, set_who] = useState<Status | null>(null);
  const [rule, set_rule] = useState<Parameters>({ parameters: [], yaml: null });
  const [why, set_why] = useState("");
  const [open, set_open] = useState(false);
  const [tried, set_tried] = useState<Tried>("values");
  const [chosen, set_chosen] = useState("");
  const [written, set_written] = useState("");  // the newest text that was judged
  const [task, set_task] = useState<{ id: string; now: string } | null>(null);
  useEffect(() => { ask<Status>("/status").then(set_who, () => set_who(null)); }, [changed.value]);
  const unfold = () => {
    set_open(!open);
    ask<Parameters>(`/rules/${encodeURIComponent(issue.rule)}/parameters`).then((answer) => {
      const swept = answer.parameters.filter(is_swept);
      set_rule({ parameters: swept, yaml: answer.yaml });
      set_chosen((before) => before || (swept.find((one) => typeof one.value === "number") ?? swept[0])?.name || "");
      if (swept.length === 0 && answer.yaml) set_tried("yaml");
      set_why(swept.length === 0 && !answer.yaml ? `${issue.rule} has no parameter to try other values of.` : "");
    }, (error: Error) => set_why(error.message));
  };
  const now = String(rule.parameters.find((one) => one.name === chosen)?.value ?? "");
  const begin = async (body: unknown, once: string, told: string) => {
    const answer = await tell<{ task: string }>(`/runs/${run}/replay`, body, once);
    replayed.value = null;
    set_task({ id: answer.task, now: told });
    return "";
  };
  const deed = { title: "Replay here", role: "operator", button: "Judge the run again" };
  const of_values: Deed = {
    ...deed, id: "replay", ready: (text) => chosen !== "" && text.trim() !== "",
    fields: (text, set) => <>
      <p>The recorded telemetry of this run is judged again, once per value. Nobody is told and nothing is stopped.</p>
      <label>Parameter <select value={chosen} onChange={(event) => set_chosen(event.currentTarget.value)}>{rule.parameters.map((one) => <option key={one.name} value={one.name}>{one.name} (now {String(one.value)})</option>)}</select></label>
      <label>Values <input name="values" value={text} placeholder="1, 2, 4 or 0.001..1 or 1..5:9" onInput={(event) => set(event.currentTarget.value)} /></label></>,
    go: (text, once) => begin({ rule: issue.rule, parameter: chosen, values: text.replaceAll(/\s/g, "") }, once, now),
  };
  const of_text: Deed = {
    ...deed, id: "replay-text", ready: (text) => text.trim() !== "", text: written || rule.yaml || "",
    fields: (text, set) => <>
      <p>The recorded telemetry of this run is judged again by the rules of this text. Nobody is told, nothing is stopped, and the configuration stays as it is.</p>
      <label>Rules in YAML <textarea class="code" name="yaml" spellcheck={false} rows={Math.min(24, Math.max(6, text.split("\n").length))} value={text} onInput={(event) => set(event.currentTarget.value)} /></label></>,
    go: (text, once) => { set_written(text); return begin({ yaml: text }, once, ""); },
  };
  const close = () => set_open(false);
  return (
    <Panel title="Would another value have fired?" id="replay">
      <p class="deeds"><button type="button" aria-expanded={open} onClick={unfold}>Replay here</button></p>
      {open && why && <p class="fault" role="alert">{why}</p>}
      {open && !why && rule.yaml && rule.parameters.length > 0 && <p class="tools" role="group" aria-label="what is tried">{([["values", "Other values"], ["yaml", "Another text of the rule"]] as [Tried, string][]).map(([one, words]) => (
        <button key={one} type="button" aria-pressed={tried === one} onClick={() => set_tried(one)}>{words}</button>))}</p>}
      {open && !why && <Form key={`${tried} ${rule.yaml}`} deed={tried === "yaml" ? of_text : of_values} who={who} done={close} close={close} />}
      {task && <Progress key={task.id} id={task.id} now={task.now} of={issue.key} />}
    </Panel>
  );
}
