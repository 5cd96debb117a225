// Replay here: would the rule of this issue have fired with another value of a parameter? The run is judged again, as a task.
import { useEffect, useState } from "preact/hooks";
import { Form, type Deed } from "./act";
import { ask, tell, type Issue, type Status } from "./api";
import { Moment, Panel } from "./parts";
import { changed } from "./stream";

interface Parameter { name: string; value: unknown; origin: string }
interface Row { attempt: number; value: string; first_step: number | null; first_time: string | null; issues: number }
interface Task { id: string; state: string; progress: number; error: string | null; result: { parameter: string; rows: Row[]; gaps: number; failed: { why: string }[] } | null }

const is_swept = (one: Parameter) => ["number", "boolean", "string"].includes(typeof one.value);

function Result({ task, now }: { task: Task; now: string }) {
  const { result } = task;
  if (!result) return null;
  const several = new Set(result.rows.map((row) => row.attempt)).size > 1;
  return (
    <div class="wide" tabIndex={0} role="region" aria-label="Result of the replay">
      <table><caption class="dim">{result.parameter} is now {now}</caption>
        <thead><tr><th scope="col">{result.parameter}</th>{several && <th scope="col">Attempt</th>}<th scope="col">Fires?</th><th scope="col">First step</th><th scope="col">Issues</th><th scope="col">First time</th></tr></thead>
        <tbody>{result.rows.map((row) => (
          <tr key={`${row.attempt}/${row.value}`}><th scope="row">{row.value}</th>{several && <td>{row.attempt}</td>}<td class={row.issues > 0 ? "bad" : "good"}>{row.issues > 0 ? "yes" : "no"}</td>
            <td>{row.first_step ?? "–"}</td><td>{row.issues}</td><td><Moment at={row.first_time} /></td></tr>))}</tbody></table>
      {result.gaps > 0 && <p>Records are missing at {result.gaps} {result.gaps === 1 ? "place" : "places"}: the table tells of what is left.</p>}
      {result.failed.map((one) => <p key={one.why} class="fault">{one.why}</p>)}
    </div>);
}

function Progress({ id, now }: { id: string; now: string }) {
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
  const cancel = () => tell(`/tasks/${id}`, undefined, "", "DELETE").then(() => undefined, (error: Error) => set_why(error.message));
  if (why || task?.error) return <p class="fault" role="alert">{why || task?.error}</p>;
  if (task?.state === "cancelled") return <p role="status">Cancelled.</p>;
  if (task?.state === "done") return <Result task={task} now={now} />;
  return <p role="status">The run is judged again: {Math.round((task?.progress ?? 0) * 100)} % <button type="button" onClick={cancel}>Cancel</button></p>;
}

export function ReplayPanel({ issue, run }: { issue: Issue; run: string }) {
  const [who, set_who] = useState<Status | null>(null);
  const [parameters, set_parameters] = useState<Parameter[]>([]);
  const [why, set_why] = useState("");
  const [open, set_open] = useState(false);
  const [chosen, set_chosen] = useState("");
  const [task, set_task] = useState("");
  useEffect(() => { ask<Status>("/status").then(set_who, () => set_who(null)); }, [changed.value]);
  const unfold = () => {
    set_open(!open);
    ask<{ parameters: Parameter[] }>(`/rules/${encodeURIComponent(issue.rule)}/parameters`).then((answer) => {
      const swept = answer.parameters.filter(is_swept);
      set_parameters(swept);
      set_chosen((before) => before || (swept.find((one) => typeof one.value === "number") ?? swept[0])?.name || "");
      set_why(swept.length === 0 ? `${issue.rule} has no parameter to try other values of.` : "");
    }, (error: Error) => set_why(error.message));
  };
  const now = String(parameters.find((one) => one.name === chosen)?.value ?? "");
  const deed: Deed = {
    id: "replay", title: "Replay here", role: "operator", button: "Judge the run again", ready: (text) => chosen !== "" && text.trim() !== "",
    fields: (text, set) => <>
      <p>The recorded telemetry of this run is judged again, once per value. Nobody is told and nothing is stopped.</p>
      <label>Parameter <select value={chosen} onChange={(event) => set_chosen(event.currentTarget.value)}>{parameters.map((one) => <option key={one.name} value={one.name}>{one.name} (now {String(one.value)})</option>)}</select></label>
      <label>Values <input name="values" value={text} placeholder="1, 2, 4 or 0.001..1 or 1..5:9" onInput={(event) => set(event.currentTarget.value)} /></label></>,
    go: async (text, once) => {
      const answer = await tell<{ task: string }>(`/runs/${run}/replay`, { rule: issue.rule, parameter: chosen, values: text.replaceAll(/\s/g, "") }, once);
      set_task(answer.task);
      return "";
    },
  };
  return (
    <Panel title="Would another value have fired?" id="replay">
      <p class="deeds"><button type="button" aria-expanded={open} onClick={unfold}>Replay here</button></p>
      {open && (why ? <p class="fault" role="alert">{why}</p> : <Form deed={deed} who={who} done={() => set_open(false)} close={() => set_open(false)} />)}
      {task && <Progress key={task} id={task} now={now} />}
    </Panel>
  );
}
