// A run: is it healthy, was it stopped, what happened to it in order.
import { ask, type HistoryLine, type RunPage, type RunRow } from "./api";
import { CapturePanel } from "./capture";
import { CurvePanel } from "./curves";
import { Headline } from "./headline";
import { JobTimesPanel, OperationsPanel } from "./job_times";
import { Asked, IssueLink, Link, Moment, Panel, Severity } from "./parts";
import { Head } from "./run_head";
import { Seen } from "./seen";
import { Done, Told } from "./told";
import { TracesPanel } from "./traces";
import { AsItWas, OnlyNow } from "./then";
import { UsagePanel } from "./usage";

export function RunScreen({ uid }: { uid: string }) {
  return (
    <Asked<RunPage> name={`/runs/${uid}`} load={() => ask(`/runs/${encodeURIComponent(uid)}`)}>{(answer) => {
      document.title = `${answer.run.job ?? answer.run.uid} · Tocsin`;
      return <>
        <Head run={answer.run} at="overview" />
        <Headline page={answer} />
        <CurvePanel id="curves" title="Curves" uid={answer.run.uid} started={answer.run.started_at} job={answer.run.job} happened={{ ...answer, uid: answer.run.uid }} />
        <OnlyNow><p><Link to={`/compare?runs=${answer.run.uid}&baseline=job`}>Compare with completed runs of this job</Link></p></OnlyNow>
        <Panel title={`Issues ${answer.issues.length}`}>
          {answer.issues.length === 0 ? <p class="good">None.</p> :
            <ul class="lines">{answer.issues.map((one) => (
              <li key={`${one.key}/${one.episode}`}><Severity of={one.severity} /> <IssueLink issue={one} />
                <span class="dim"> {one.status === "firing" ? "firing" : "over"}{one.first_sign && ", first sign"}</span></li>))}</ul>}
        </Panel>
        <div class="columns"><Done stop={answer.stop} /><Told deliveries={answer.deliveries} /></div>
        <OnlyNow what="Captures, traces, times of operations and use of the nodes are"><CapturePanel run={answer.run} />
        <Seen height={1}><TracesPanel uid={answer.run.uid} /></Seen>
        <Seen height={240}><div class="columns"><JobTimesPanel uid={answer.run.uid} /><OperationsPanel uid={answer.run.uid} /></div></Seen>
        <Seen height={240}><UsagePanel uid={answer.run.uid} /></Seen></OnlyNow>
      </>;
    }}</Asked>
  );
}

// Words of the records as a person says them; names of rules and paths stay as they are.
const plain = (line: HistoryLine): { text: string; detail: string } => {
  const detail = line.detail ?? "";
  const spoken = (text: string) => text.replaceAll("_", " ");
  if (line.kind === "run") return { text: line.text, detail: spoken(detail) };
  if (line.kind === "answer") return { text: spoken(line.text), detail };
  if (line.kind === "command") return { text: line.text, detail: detail && `by ${detail}` };
  return { text: line.text, detail: line.kind === "issue" ? detail.replace(/: .*$/, spoken) : detail };
};

export function HistoryScreen({ uid }: { uid: string }) {
  interface Answer { run: RunRow; items: HistoryLine[] }
  return (
    <Asked<Answer> name={`/runs/${uid}/history`} load={() => ask(`/runs/${encodeURIComponent(uid)}/history`)}>{(answer) => (
      <>
        <Head run={answer.run} at="history" />
        <Panel title="What happened, newest first">
          <ol class="history">{answer.items.map((line) => ({ ...line, ...plain(line) })).map((line, at) => (
            <li key={at}><span class="dim"><Moment at={line.time} /></span> <span class="kind">{line.kind}</span>{" "}
              <span>{line.key ? <Link to={`/issues/${encodeURIComponent(line.key)}/newest`}>{line.text}</Link> : line.text}
                {line.state && ` · ${line.state.replaceAll("_", " ")}`}{line.step != null && ` · step ${line.step}`}
                {line.detail && <span class="dim"> {line.detail}</span>} {line.kind !== "run" && <AsItWas to={`/runs/${uid}`} at={line.time}>as it was then</AsItWas>}</span></li>))}</ol>
        </Panel>
      </>)}</Asked>
  );
}
