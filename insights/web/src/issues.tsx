// All issues: what is open first, a line per first sign, with what followed from it folded under it.
import { ask, type Issue } from "./api";
import { ago, Asked, issue_path, Link, Panel, Severity } from "./parts";
import { place, set_query } from "./place";

interface Issues { items: Issue[]; next: string | null }
interface Sign { issue: Issue; after: Issue[] }

const GRADES = ["critical", "error", "warning", "info"];
const asked = (name: string) => place.value.query.get(name) ?? "";
const grade = (issue: Issue) => GRADES.indexOf(issue.severity);

const fits = (issue: Issue, text: string, severity: string) =>
  (!severity || issue.severity === severity) &&
  (!text || [issue.summary, issue.rule, issue.job ?? "", issue.run?.uid ?? "", ...Object.values(issue.labels)].some((one) => one.toLowerCase().includes(text)));

// What follows from an issue of the list stands under it; what follows from nothing that is there stands alone.
function signs_of(issues: Issue[]): Sign[] {
  const by_key = new Map(issues.map((one) => [one.key, one]));
  const root = (issue: Issue): Issue => {
    const seen = new Set([issue.key]);
    let at = issue;
    for (;;) {
      const cause = at.caused_by.map((one) => by_key.get(one.key)).find((one) => one && !seen.has(one.key));
      if (!cause) return at;
      seen.add(cause.key);
      at = cause;
    }
  };
  const out = new Map<string, Sign>();
  for (const issue of issues) {
    const first = root(issue);
    if (!out.has(first.key)) out.set(first.key, { issue: first, after: [] });
    if (first.key !== issue.key) out.get(first.key)!.after.push(issue);
  }
  return [...out.values()].sort((a, b) => grade(a.issue) - grade(b.issue) || (b.issue.starts_at ?? "").localeCompare(a.issue.starts_at ?? ""));
}

const standing = (issue: Issue) => [issue.acked_by && `acknowledged by ${issue.acked_by}`, issue.silenced_by.length > 0 && "silenced",
  (issue.inhibited_by ?? []).length > 0 && "held back by another issue", (issue.muted_by ?? []).length > 0 && "muted"].filter(Boolean).join(", ");

function Line({ issue }: { issue: Issue }) {
  const state = standing(issue);
  return (
    <>
      <Severity of={issue.severity} /> <Link to={issue_path(issue)}>{issue.summary}</Link>
      <span class="dim"> {issue.run ? <Link to={`/runs/${issue.run.uid}`}>{issue.job || issue.run.uid.slice(0, 8)}</Link> : issue.labels.node ?? "of no run"} · {issue.rule}
        {issue.starts_at && ` · ${ago(issue.starts_at)}`}{state && <b> · {state}</b>}</span>
    </>
  );
}

function Signs({ signs }: { signs: Sign[] }) {
  return <ul class="lines">{signs.map(({ issue, after }) => (
    <li key={issue.key}><Line issue={issue} />
      {after.length > 0 && <details><summary>{after.length} {after.length === 1 ? "issue follows" : "issues follow"} from it</summary>
        <ul class="lines inner">{after.map((one) => <li key={one.key}><Line issue={one} /></li>)}</ul></details>}</li>))}</ul>;
}

export function IssuesScreen() {
  const text = asked("q").toLowerCase();
  const severity = asked("severity");
  document.title = "Issues · Tocsin";
  return (
    <>
      <h1>Issues</h1>
      <p class="tools"><label>Filter <input type="search" value={asked("q")} placeholder="job, rule, label, text" onInput={(event) => set_query("q", event.currentTarget.value)} /></label>
        <label>Severity <select value={severity} onChange={(event) => set_query("severity", event.currentTarget.value)}><option value="">all</option>{GRADES.map((one) => <option key={one} value={one}>{one}</option>)}</select></label></p>
      <Asked<Issues> name="issues" load={() => ask("/issues?limit=1000")}>{(answer) => {
        const shown = answer.items.filter((one) => fits(one, text, severity));
        const open = shown.filter((one) => one.status === "firing");
        const over = shown.filter((one) => one.status !== "firing");
        return <>
          <Panel title={`Open ${open.length}`}>{open.length > 0 ? <Signs signs={signs_of(open)} /> : <p class="good">None.</p>}</Panel>
          {over.length > 0 && <Panel title={`Over within the last hour ${over.length}`}><Signs signs={signs_of(over)} /></Panel>}
          {answer.items.length > 0 && shown.length === 0 && <p>No issue fits the filter.</p>}
          {answer.next && <p class="dim">Only the newest 1000 are shown.</p>}
          <p class="dim">Older ones stand on the page of their run.</p>
        </>;
      }}</Asked>
    </>
  );
}
