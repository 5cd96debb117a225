// Says on every screen that it shows the past, and what can only be told as it is now.
import type { ComponentChildren } from "preact";
import { ask, type RunRow } from "./api";
import { moment_words, zone } from "./look";
import { Asked, IssueLink, Link, Panel, Severity, ago, told_words } from "./parts";
import { as_of, back_to_now, moment } from "./past";
import { attempt_words, outcome_words } from "./runs";

export function ThenBanner() {
  if (!moment.value) return null;
  return (
    <p class="then" role="status"><span>As of <time dateTime={moment.value}>{moment_words(new Date(moment.value).toISOString(), zone.value)}</time>. Nothing here moves.</span>{" "}
      <button type="button" onClick={back_to_now}>Back to now</button></p>
  );
}

// What is only told as it is now is left out of the past.
export function OnlyNow({ what, children }: { what?: string; children: ComponentChildren }) {
  if (!moment.value) return <>{children}</>;
  return what ? <p class="dim">{what} only told as it is now. <button type="button" class="plain" onClick={back_to_now}>Back to now</button></p> : null;
}

export const AsItWas = ({ to, at, children }: { to: string; at: string; children: ComponentChildren }) =>
  moment.value ? null : <Link to={as_of(to, at)}>{children}</Link>;

// The list of runs as it was: those heard of last first, as of then no order by trouble is known.
export function PastRuns() {
  return (
    <>
      <h1>Runs</h1>
      <Asked<{ items: RunRow[]; next: string | null }> name={`runs ${moment.value}`} load={() => ask("/runs?limit=100")}>{(answer) => (
        <Panel title={`Known then ${answer.items.length}`}>
          <ul class="lines" aria-label="runs">{answer.items.map((run) => (
            <li key={run.uid}><Link to={`/runs/${run.uid}`}>{run.job || "no job name"}</Link> <span class="dim">{run.uid.slice(0, 8)}{attempt_words(run.attempt)}</span>{" "}
              {outcome_words(run)} {run.headline ? <><Severity of={run.headline.severity} /> <IssueLink issue={run.headline} /> <span class="dim">{told_words(run.told)}</span></> : <span class="dim">no issues</span>}
              <span class="dim"> · {ago(run.heard_at)}</span></li>))}</ul>
          {answer.next && <p class="dim">Only the 100 that were heard of last are shown.</p>}
        </Panel>)}</Asked>
    </>
  );
}
