// Runs: which is in trouble, since when, and is it being dealt with?
import { useEffect, useState } from "preact/hooks";
import { ask, Refused, type RunRow } from "./api";
import { LongList } from "./long_list";
import { ago, IssueLink, Link, Severity, SignIn, told_words } from "./parts";
import { is_paused } from "./paused";
import { place, set_query } from "./place";
import { SparkLine, useSparks, type Spark } from "./sparks";
import { changed } from "./stream";

interface Runs { items: RunRow[]; total: number; groups: { trouble: number; running: number; ended: number }; current: boolean }
interface Known { words: string; answer: Runs; rows: Map<number, RunRow> }  // rows by place

const PAGE = 50;
const LATER = 2000;  // ms, if the server is not ready

// Rows [first, last) of the runs in which all words stand, and what was known before; asked again when a run has changed.
function useRuns(words: string, first: number, last: number) {
  const [known, know] = useState<Known | null>(null);
  const [error, fail] = useState<Error | null>(null);
  const [again, set_again] = useState(0);
  const turn = changed.value;
  const pages = [Math.floor(first / PAGE), Math.floor(Math.max(first, last - 1) / PAGE)] as const;
  useEffect(() => {
    let left = false;
    let later = 0;
    const take = (from: number) => ask<Runs>(`/runs?order=trouble&limit=${PAGE}&offset=${from}&q=${encodeURIComponent(words)}`).then((answer) => {
      if (left) return;
      fail(null);
      know((now) => {
        const rows = new Map(now?.words === words ? now.rows : []);
        answer.items.forEach((one, at) => rows.set(from + at, one));
        return { words, answer, rows };
      });
    }, (why: Error) => {
      if (left) return;
      fail(why);
      if (why instanceof Refused && why.status === 503) later = window.setTimeout(() => { if (!is_paused()) set_again((count) => count + 1); }, LATER);
    });
    for (let page = pages[0]; page <= pages[1]; page += 1) void take(page * PAGE);
    return () => { left = true; window.clearTimeout(later); };
  }, [words, ...pages, turn, again]);
  return { known, error, again: () => set_again(again + 1) };
}

// An attempt that nobody has numbered has its start in seconds for a number, which says nothing to a person.
export const attempt_words = (attempt: number) => (attempt < 1e9 ? ` · attempt ${attempt}` : "");

export const outcome_words = (run: RunRow) =>
  run.state === "running" ? "running" : (run.outcome ?? "ended").replaceAll("_", " ");

const marked = () => (place.value.query.get("marked") ?? "").split(",").filter(Boolean);
function turn_mark(uid: string): void {
  const now = marked();
  set_query("marked", (now.includes(uid) ? now.filter((one) => one !== uid) : [...now, uid]).join(","));
}

function Row({ run, spark }: { run: RunRow | undefined; spark: Spark | undefined }) {
  if (!run) return <div role="gridcell" class="dim">…</div>;
  const head = run.headline;
  return (
    <>
      <div role="gridcell" class="run-name">
        <span class="run-mark"><input type="checkbox" aria-label={`compare ${run.job || "run"} ${run.uid.slice(0, 8)}`} checked={marked().includes(run.uid)} onChange={() => turn_mark(run.uid)} />
          <Link to={`/runs/${run.uid}`}>{run.job || "no job name"}</Link></span>
        <span class="dim">{run.uid.slice(0, 8)}{attempt_words(run.attempt)}{run.pin && <span title={`pinned at ${run.pin.at}: it is kept`}> · pinned by {run.pin.by}</span>}</span>
      </div>
      <div role="gridcell" class="run-state">{outcome_words(run)}<span class="dim">{run.step === null ? "" : `step ${run.step}`}</span></div>
      <div role="gridcell" class="run-loss">{spark && <SparkLine of={spark} />}</div>
      <div role="gridcell" class="run-head">{head ? <><Severity of={head.severity} /> <IssueLink issue={head} /></> : <span class="dim">no issues</span>}</div>
      <div role="gridcell" class="run-told dim">{run.issues.total > 0 && told_words(run.told)}</div>
      <div role="gridcell" class="run-heard dim">{ago(run.heard_at)}</div>
    </>
  );
}

export function RunsScreen() {
  const wanted = place.value.query.get("q") ?? "";
  const [seen, see] = useState<[number, number]>([0, 30]);
  const { known, error, again } = useRuns(wanted, ...seen);
  const shown = Array.from({ length: Math.max(0, seen[1] - seen[0]) }, (_, at) => known?.rows.get(seen[0] + at)).filter((one): one is RunRow => one !== undefined);
  const sparks = useSparks(shown);
  document.title = "Runs · Tocsin";
  const chosen = marked();
  if (error instanceof Refused && error.status === 401) return <SignIn done={again} />;
  const { total = 0, groups } = known?.answer ?? {};
  return (
    <>
      <h1>Runs</h1>
      <p class="tools"><label class="filter">Filter <input type="search" value={wanted} placeholder="job, label, issue, outcome"
        onInput={(event) => set_query("q", event.currentTarget.value)} /></label>
        {wanted && known?.words === wanted && <span class="dim" role="status">{total} {total === 1 ? "run fits" : "runs fit"}</span>}
        {chosen.length > 1 && <Link kind="button" to={`/compare?runs=${chosen.join(",")}`}>Compare {chosen.length} runs</Link>}
        {chosen.length === 1 && <span class="dim">Mark another run to compare them.</span>}</p>
      {error && <p class="fault" role="alert">{error.message} <button type="button" onClick={again}>Ask again</button></p>}
      {known && groups && <>
        {!known.answer.current && <p class="dim" role="status">The topics are still being read: more may come.</p>}
        {total > 0 && <section class="panel" aria-label="runs"><LongList label="runs" look={(first, last) => see([first, last])} row={(at) => { const run = known.rows.get(at); return <Row run={run} spark={run && sparks.get(run.uid)} />; }}
          groups={[{ name: "In trouble", count: groups.trouble }, { name: "Running", count: groups.running }, { name: "Ended", count: groups.ended }]} /></section>}
        {total === 0 && (known.words ? <p>No run fits the filter.</p> : <p>No run was heard of yet. A first one: <code>tocsin run -- python train.py</code></p>)}
      </>}
    </>
  );
}
