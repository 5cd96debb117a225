// Is the run healthy? If not: one sentence, with the way to it.
import type { IssueRow, RunPage } from "./api";
import { ago, IssueLink, Link, Severity, told_words } from "./parts";
import { lacks } from "./rules";

const place_of = (issue: IssueRow) => [issue.tensor, issue.mode && issue.step !== null ? `${issue.mode} step ${issue.step}` : issue.step !== null && `step ${issue.step}`, issue.worker].filter(Boolean).join(" · ");

export function Headline({ page }: { page: RunPage }) {
  const { run, rules, issues } = page;
  const head = run.headline;
  if (head) {
    const others = issues.length - 1;
    return (
      <section class="panel headline trouble" id="headline" aria-label="state of the run">
        <p><Severity of={head.severity} /> <b><IssueLink issue={head} /></b></p>
        <p class="dim">{place_of(head)}{place_of(head) && " · "}{head.status === "firing" ? `firing, since ${ago(head.starts_at)}` : "over"}
          {" · "}{told_words(run.told)}
          {others > 0 && ` · ${others} more ${others === 1 ? "issue" : "issues"} below`}</p>
      </section>
    );
  }
  const judged = rules.filter((rule) => (rule.evaluations.ok ?? 0) + (rule.evaluations.hit ?? 0) > 0 || rule.status === "InProgress" || rule.status === "NoIssuesFound");
  const times = rules.reduce((sum, rule) => sum + (rule.evaluations.ok ?? 0) + (rule.evaluations.hit ?? 0), 0);
  const ailing = rules.filter(lacks);
  const waiting = rules.length - judged.length;
  return (
    <section class="panel headline" id="headline" aria-label="state of the run">
      {judged.length > 0 ? <p><b class="good">✓ No issue.</b> {judged.length} {judged.length === 1 ? "rule judges" : "rules judge"}{times > 0 && `, ${times} ${times === 1 ? "judgement" : "judgements"} told`}; heard of {ago(run.heard_at)}.</p>
        : <p><b>No rule has judged this run yet.</b> Heard of {ago(run.heard_at)}.</p>}
      {ailing.length > 0 && <p class="bad">{ailing.map((rule) => rule.rule).slice(0, 3).join(", ")}{ailing.length > 3 && ` and ${ailing.length - 3} more`} cannot judge: <Link to={`/runs/${run.uid}/rules`}>why</Link></p>}
      {ailing.length === 0 && waiting > 0 && judged.length > 0 && <p class="dim">{waiting} wait for data that this run has not sent: <Link to={`/runs/${run.uid}/rules`}>which</Link></p>}
    </section>
  );
}
