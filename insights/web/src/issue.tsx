// The page of an issue, to which messages link: what broke, where, who was told, what was done, what next.
import type { ComponentChildren } from "preact";
import { Act } from "./act";
import { ask, type Evidence, type Issue, type IssuePage, type IssueRow } from "./api";
import { CurvePanel } from "./curves";
import { Feedback } from "./feedback";
import { Asked, Command, IssueLink, issue_path, Link, Moment, Panel, Severity } from "./parts";
import { before } from "./past";
import { ReplayPanel } from "./replay";
import { marks_of_issue } from "./replay_marks";
import { attempt_words, outcome_words } from "./runs";
import { show_run } from "./shown_run";
import { Done, Told } from "./told";
import { AsItWas, OnlyNow } from "./then";
import { WhereInTheModel } from "./where";

const by_step = (a: IssueRow, b: IssueRow) =>
  a.starts_at.localeCompare(b.starts_at) || (a.step ?? 0) - (b.step ?? 0);

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div class="fact"><dt>{name}</dt><dd>{children}</dd></div>;
}

function rank_of(issue: Issue): string | null {
  if (issue.labels.rank) return issue.labels.rank;
  const number = /(\d+)$/.exec(issue.worker ?? "");
  return number ? number[1] ?? null : null;
}

// The name of the tensor or metric that an issue is about.
function subject({ issue, evidence }: { issue: Issue; evidence: Evidence | null }): string | null {
  const worst = evidence?.affected?.worst[0]?.unit;  // "tensor=fc.weight", "metric=loss"
  return issue.tensor ?? evidence?.tensor?.name ?? issue.labels.tensor ?? issue.labels.metric ?? worst?.replace(/^[a-z_]+=/, "") ?? null;
}

function Where({ issue, evidence }: { issue: Issue; evidence: Evidence | null }) {
  const tensor = subject({ issue, evidence });
  const shape = evidence?.tensor?.shape;
  return (
    <dl class="facts" id="where">
      <Fact name="Step"><b>{issue.step ?? "–"}</b>{issue.mode && ` of ${issue.mode}`}</Fact>
      <Fact name="Tensor, layer or metric"><b>{tensor ?? "none named"}</b>{shape && shape.length > 0 && <span class="dim"> {shape.join("×")}</span>}</Fact>
      <Fact name="Rank"><b>{rank_of(issue) ?? "–"}</b>{issue.worker && <span class="dim"> {issue.worker}</span>}</Fact>
      {issue.labels.node && <Fact name="Node">{issue.labels.node}</Fact>}
      <Fact name="Since"><Moment at={issue.starts_at} /></Fact>
      <Fact name="Rule">{issue.rule}</Fact>
    </dl>
  );
}

// "3 of the 12 tensors that the rule checked at this step were affected.": units are named "tensor=…", "metric=…".
function affected_words({ hit, evaluated, worst }: NonNullable<Evidence["affected"]>): string {
  const kind = /^(tensor|metric|layer|worker|node|device)=/.exec(worst[0]?.unit ?? "")?.[1];
  const all = `${evaluated} ${kind ? `${kind}s that the rule checked at this step` : "that the rule checked at this step"}`;
  return `${hit === evaluated ? `All ${all}` : `${hit} of the ${all}`} ${hit === 1 ? "was" : "were"} affected.`;
}

function Measured({ evidence }: { evidence: Evidence | null }) {
  if (!evidence?.observed) return null;
  const { observed, operator, threshold, affected } = evidence;
  return (
    <p>{observed.name} was <b>{String(observed.value)}</b>{threshold && <>; the rule fires when it is {operator} <b>{String(threshold.value)}</b></>}.
      {affected && affected.evaluated > 1 && ` ${affected_words(affected)}`}</p>
  );
}

function Chain({ issue, issues, earlier: begun }: { issue: Issue; issues: IssueRow[]; earlier: IssueRow[] }) {
  const causes = issue.caused_by.map((cause) =>
    issues.find((one) => one.key === cause.key) ?? null);
  const earlier = issue.caused_by.length > 0 ? [] : begun;
  const others = issues.filter((one) => one.key !== issue.key && !earlier.some((other) => other.key === one.key && other.episode === one.episode) &&
    !issue.caused_by.some((cause) => cause.key === one.key)).sort(by_step);
  return (
    <Panel title="First sign" id="first-sign">
      {earlier.length > 0 ? <><p>No cause was known when it was reported. These began at earlier steps:</p>
        <ol class="lines">{earlier.map((one) => <li key={`${one.key}/${one.episode}`}><Severity of={one.severity} /> <IssueLink issue={one} /> <span class="dim">step {one.step}</span></li>)}
          <li><Severity of={issue.severity} /> this issue <span class="dim">step {issue.step}</span></li></ol></> :
        issue.caused_by.length === 0 ? <p>This is the first sign: nothing before it explains it.</p> :
        <ol class="lines">{issue.caused_by.map((cause, at) => {
          const known = causes[at];
          return <li key={cause.key}>{known ? <><Severity of={known.severity} /> <IssueLink issue={known} /></> : cause.rule}
            <span class="dim"> {cause.step !== null && `step ${cause.step}`}</span></li>;
        })}<li><Severity of={issue.severity} /> this issue <span class="dim">{issue.step !== null && `step ${issue.step}`}</span></li></ol>}
      {others.length > 0 && <>
        <p class="dim">Other issues of this run, by time:</p>
        <ul class="lines">{others.slice(0, 10).map((one) => <li key={`${one.key}/${one.episode}`}><Severity of={one.severity} /> <IssueLink issue={one} /></li>)}</ul></>}
    </Panel>
  );
}

function Next({ answer }: { answer: IssuePage }) {
  const { issue, run, stop } = answer;
  const ended = run?.state === "ended";
  return (
    <Panel title="What to do next" id="next">
      {issue.recommendation && <p><b>{issue.recommendation}</b></p>}
      {issue.runbook_url && /^https?:/.test(issue.runbook_url) && <p><a href={issue.runbook_url} rel="noreferrer">Runbook</a></p>}
      {stop?.checkpoint && <Command says={`Resume from the checkpoint${stop.checkpoint.host ? `, on ${stop.checkpoint.host}` : ""}`} line={stop.checkpoint.path} />}
      <Command says="Show the issue with all its evidence" line={`tocsin issues show ${issue.event_id}`} />
      {issue.run && <Command says="Judge the same records again" line={`tocsin issues reproduce ${issue.event_id}`} />}
      {run && !ended && !stop && <Command says="Stop the run" line={`tocsin stop ${run.uid}`} />}
      {run && ended && <Command says="Write a report about the run" line={`tocsin report ${run.uid}`} />}
      <Command says="Silence it for two hours" line={run ? `tocsin silence add --run ${run.uid} --for 2h --comment known` : `tocsin silence add rule=${issue.rule} --for 2h --comment known`} />
    </Panel>
  );
}

function Head({ answer }: { answer: IssuePage }) {
  const { issue, run, stop } = answer;
  const fires = issue.status === "firing";
  return (
    <header class="head">
      <p class="dim">{run ? <><Link to={`/runs/${run.uid}`}>{run.job || run.uid.slice(0, 8)}</Link>{attempt_words(run.attempt)} · {outcome_words(run)}</> : "of no run"}</p>
      <h1><Severity of={issue.severity} /> {issue.summary}</h1>
      <p><span class={fires ? "bad" : "good"}>{fires ? "Firing" : issue.ending?.summary ? "Over." : `Over: ${(issue.resolution ?? "resolved").replaceAll("_", " ")}`}</span>
        {issue.ending?.summary && !fires && <span class="dim"> {issue.ending.summary}</span>}
        {stop && <> · {stop.state === "stopped" ? "run stopped" : `stop ${stop.state}`}{stop.checkpoint && ", checkpoint saved"}</>}
        {issue.ends_at && !fires && <> · <AsItWas to={issue_path(issue)} at={before(issue.ends_at)}>as it was before it ended</AsItWas></>}</p>
    </header>
  );
}

export function IssueScreen({ issue_key, episode }: { issue_key: string; episode: string }) {
  const path = `/issues/${encodeURIComponent(issue_key)}/${encodeURIComponent(episode)}`;
  return (
    <Asked<IssuePage> name={path} load={() => ask(path)}>{(answer) => {
      const happened = { uid: answer.run?.uid ?? "", issues: answer.issues_of_run, stop: answer.stop, changes: answer.changes };
      show_run(answer.run);
      document.title = `${answer.issue.status === "firing" ? "■ " : ""}${answer.issue.summary} · Tocsin`;
      return <>
        <Head answer={answer} />
        <Where issue={answer.issue} evidence={answer.evidence} />
        <div class="columns">
          <div>
            <Done stop={answer.stop} />
            <Told deliveries={answer.deliveries} />
            {answer.run && <CurvePanel id="evidence" title="What it looked like" uid={answer.run.uid} started={answer.run.started_at} happened={happened}
              only={subject(answer)} around={answer.issue.step} more={marks_of_issue(answer.issue.key)} />}
            <OnlyNow>{answer.run && <WhereInTheModel issue={answer.issue} run={answer.run.uid} happened={happened} />}</OnlyNow>
          </div>
          <div>
            <OnlyNow what="What you can do about it, and what was said of it, is"><Act answer={answer} />
              <Feedback answer={answer} />
              <Next answer={answer} />
              {answer.run && <ReplayPanel issue={answer.issue} run={answer.run.uid} />}</OnlyNow>
            <Chain issue={answer.issue} issues={answer.issues_of_run} earlier={answer.earlier} />
            <Panel title="Why it was reported"><Measured evidence={answer.evidence} />{answer.issue.description && <p>{answer.issue.description}</p>}</Panel>
          </div>
        </div>
      </>;
    }}</Asked>
  );
}
