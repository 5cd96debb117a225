// Runs: which is in trouble, since when, and is it being dealt with?
import { ask, type RunRow } from "./api";
import { ago, Asked, IssueLink, Link, Severity, told_words } from "./parts";
import { place, set_query } from "./place";

interface Runs { items: RunRow[]; next: string | null; as_of: string; current: boolean }

const GROUPS: [string, (run: RunRow) => boolean][] = [
  ["In trouble", (run) => run.issues.open > 0],
  ["Running", (run) => run.state === "running"],
  ["Ended", () => true],
];

// An attempt that nobody has numbered has its start in seconds for a number, which says nothing to a person.
export const attempt_words = (attempt: number) => (attempt < 1e9 ? ` · attempt ${attempt}` : "");

export const outcome_words = (run: RunRow) =>
  run.state === "running" ? "running" : (run.outcome ?? "ended").replaceAll("_", " ");

const marked = () => (place.value.query.get("marked") ?? "").split(",").filter(Boolean);
function turn_mark(uid: string): void {
  const now = marked();
  set_query("marked", (now.includes(uid) ? now.filter((one) => one !== uid) : [...now, uid]).join(","));
}

function Row({ run }: { run: RunRow }) {
  const head = run.headline;
  return (
    <li class="run">
      <div class="run-name">
        <span class="run-mark"><input type="checkbox" aria-label={`compare ${run.job || "run"} ${run.uid.slice(0, 8)}`} checked={marked().includes(run.uid)} onChange={() => turn_mark(run.uid)} />
          <Link to={`/runs/${run.uid}`}>{run.job || "no job name"}</Link></span>
        <span class="dim">{run.uid.slice(0, 8)}{attempt_words(run.attempt)}</span>
      </div>
      <div class="run-state">{outcome_words(run)}<span class="dim">{run.step === null ? "" : `step ${run.step}`}</span></div>
      <div class="run-head">{head ? <><Severity of={head.severity} /> <IssueLink issue={head} /></> : <span class="dim">no issues</span>}</div>
      <div class="run-told dim">{run.issues.total > 0 && told_words(run.told)}</div>
      <div class="run-heard dim">{ago(run.heard_at)}</div>
    </li>
  );
}

export function RunsScreen() {
  const wanted = (place.value.query.get("q") ?? "").toLowerCase();
  const fits = (run: RunRow) => !wanted ||
    [run.uid, run.job ?? "", run.headline?.summary ?? "", outcome_words(run), ...Object.values(run.labels)]
      .some((text) => text.toLowerCase().includes(wanted));
  document.title = "Runs · Tocsin";
  const chosen = marked();
  return (
    <>
      <h1>Runs</h1>
      <p class="tools"><label class="filter">Filter <input type="search" value={wanted} placeholder="job, label, issue, outcome"
        onInput={(event) => set_query("q", event.currentTarget.value)} /></label>
        {chosen.length > 1 && <Link kind="button" to={`/compare?runs=${chosen.join(",")}`}>Compare {chosen.length} runs</Link>}
        {chosen.length === 1 && <span class="dim">Mark another run to compare them.</span>}</p>
      <Asked<Runs> name="runs" load={() => ask("/runs?limit=500")}>{(answer) => {
        let rest = answer.items.filter(fits);
        return <>
          {!answer.current && <p class="dim" role="status">The topics are still being read: more may come.</p>}
          {GROUPS.map(([name, takes]) => {
            const group = rest.filter(takes);
            rest = rest.filter((run) => !takes(run));
            return group.length > 0 && (
              <section class="panel" key={name}><h2>{name} <span class="dim">{group.length}</span></h2>
                <ul class="runs">{group.map((run) => <Row key={run.uid} run={run} />)}</ul></section>);
          })}
          {answer.items.length === 0 && <p>No run was heard of yet. A first one: <code>tocsin run -- python train.py</code></p>}
          {answer.items.length > 0 && !answer.items.some(fits) && <p>No run fits the filter.</p>}
          {answer.next && <p class="dim">Only the 500 heard of last are shown.</p>}
        </>;
      }}</Asked>
    </>
  );
}
