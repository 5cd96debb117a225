// Do several runs fail on one node, with one image, from one queue? Seven days, against the median of the others.
import { AgentPanel } from "./agent";
import { ask, type IssueRow, type RunRow } from "./api";
import { short } from "./chart";
import { ago, Asked, IssueLink, Link, Panel, Severity } from "./parts";
import { place, set_query } from "./place";
import { moment } from "./past";
import { OnlyNow } from "./then";
import { outcome_words } from "./runs";
import { WideTable } from "./wide_table";

interface Agent {
  heard_at: string; silent: boolean; interval_ms: number | null; cpu: number | null; gpu: number | null; memory: number | null;
  xids: number | null; ecc_corrected: number | null; ecc_uncorrected: number | null; throttled: number | null;
}
interface Row {
  name: string; runs_now: number; runs: number; failed_runs: number; issues: number; stands_out: boolean; nodes: string[]; agent: Agent | null;
}
interface Median { failed_runs: number; issues: number }
interface Fleet { by: string; items: Row[]; median: Median; labels: string[] }
interface FleetNode { node: Row; median: Median; runs: RunRow[]; issues: { run: string | null; job: string | null; issue: IssueRow }[] }

const percent = (share: number | null) => (share === null ? null : `${Math.round(100 * share)} %`);
const runs_words = () => (moment.value ? "Runs then" : "Runs now");
const node_path = (name: string) => `/fleet/${encodeURIComponent(name)}`;
const some = (parts: (string | false | null)[]) => parts.filter(Boolean).join(" · ");

function load_words({ cpu, gpu, memory }: Agent): string {
  return some([cpu !== null && `CPU ${percent(cpu)}`, gpu !== null && `GPU ${percent(gpu)}`, memory !== null && `memory ${percent(memory)}`]) || "–";
}

function fault_words(agent: Agent): string {
  if (agent.xids === null && agent.throttled === null && agent.ecc_uncorrected === null) return agent.gpu === null ? "no GPU" : "not sampled";
  return some([agent.xids !== null && agent.xids > 0 && `${agent.xids} XID`, (agent.ecc_uncorrected ?? 0) > 0 && `${agent.ecc_uncorrected} uncorrected ECC`,
    (agent.ecc_corrected ?? 0) > 0 && `${agent.ecc_corrected} corrected ECC`, (agent.throttled ?? 0) > 0 && `throttled ${percent(agent.throttled)} of the time`]) || "none";
}

const is_broken = (agent: Agent) => (agent.xids ?? 0) + (agent.ecc_uncorrected ?? 0) > 0;

function AgentCells({ agent }: { agent: Agent | null }) {
  if (!agent) return <><td>no agent</td><td>–</td><td>–</td><td>–</td></>;
  return <><td>{agent.silent ? "silent" : load_words(agent)}</td><td class={is_broken(agent) ? "bad" : ""}>{fault_words(agent)}</td>
    <td class={agent.silent ? "bad" : ""}>{ago(agent.heard_at)}</td><td>{agent.interval_ms === null ? "–" : `${short(agent.interval_ms / 1000)} s`}</td></>;
}

function Line({ row, by, median }: { row: Row; by: string; median: Median }) {
  const of_nodes = by === "node";
  return (
    <tr class="fleet-row">
      <th scope="row">{of_nodes ? <Link to={node_path(row.name)}>{row.name}</Link> : row.name ? <Link to={`/?q=${encodeURIComponent(row.name)}`}>{row.name}</Link> : <span class="dim">without this label</span>}</th>
      <td class={row.stands_out ? "bad" : ""}>{row.failed_runs} of {row.runs}{row.stands_out && <b> · median {short(median.failed_runs)}</b>}</td>
      <td>{row.issues}</td>
      <td>{row.runs_now}</td>
      {of_nodes ? <AgentCells agent={row.agent} /> : <td>{row.nodes.length === 0 ? "–" : row.nodes.map((node, at) => <span key={node}>{at > 0 && ", "}<Link to={node_path(node)}>{node}</Link></span>)}</td>}
    </tr>
  );
}

export function FleetScreen() {
  const by = place.value.query.get("by") || "node";
  document.title = "Fleet · Tocsin";
  return (
    <>
      <h1>Fleet</h1>
      <Asked<Fleet> name={`fleet ${by}`} load={() => ask(`/nodes?by=${encodeURIComponent(by)}`)}>{({ items, median, labels }) => (
        <>
          <p class="tools"><label>Group by <select value={by} onChange={(event) => set_query("by", event.currentTarget.value === "node" ? "" : event.currentTarget.value)}>
            <option value="node">node</option>{[...new Set([...labels, ...(by === "node" ? [] : [by])])].map((one) => <option key={one} value={one}>label {one}</option>)}</select></label>
            <span class="dim">Seven days. Median of failed runs: {short(median.failed_runs)}, of issues: {short(median.issues)}.</span></p>
          {items.length === 0 ? <p>No node is known yet. An agent runs in <code>tocsin up</code>, and on other nodes as <code>tocsin collect</code>.</p> :
            <Panel title={by === "node" ? `Nodes ${items.length}` : `Runs by ${by}`}><WideTable label="fleet" kind="rules">
              <thead><tr><th scope="col">{by === "node" ? "Node" : by}</th><th scope="col">Failed runs</th><th scope="col">Issues</th><th scope="col">{runs_words()}</th>
                {by === "node" ? <><th scope="col">Load</th><th scope="col">GPU errors</th><th scope="col">Last heard</th><th scope="col">Interval</th></> : <th scope="col">Nodes</th>}</tr></thead>
              <tbody>{items.map((row) => <Line key={row.name} row={row} by={by} median={median} />)}</tbody></WideTable>
              <p class="dim">Failed: ended as failed, lost or stopped by a rule. Red: two failed runs or more, and more than twice the median{by === "node" && "; XIDs or uncorrected ECC errors"}.</p></Panel>}
        </>)}</Asked>
    </>
  );
}

export function FleetNodeScreen({ name }: { name: string }) {
  document.title = `${name} · Tocsin`;
  return (
    <>
      <p><Link to="/fleet">Fleet</Link></p>
      <h1>{name}</h1>
      <Asked<FleetNode> name={`node ${name}`} load={() => ask(`/nodes/${encodeURIComponent(name)}`)}>{({ node, median, runs, issues }) => (
        <>
          <dl class="facts">
            <div class="fact"><dt>Failed runs, 7 days</dt><dd class={node.stands_out ? "bad" : ""}>{node.failed_runs} of {node.runs} · median {short(median.failed_runs)}</dd></div>
            <div class="fact"><dt>Issues, 7 days</dt><dd>{node.issues} · median {short(median.issues)}</dd></div>
            <div class="fact"><dt>{runs_words()}</dt><dd>{node.runs_now}</dd></div>
            {node.agent ? <>
              <div class="fact"><dt>Load</dt><dd>{node.agent.silent ? "silent" : load_words(node.agent)}</dd></div>
              <div class="fact"><dt>GPU errors, 7 days</dt><dd class={is_broken(node.agent) ? "bad" : ""}>{fault_words(node.agent)}</dd></div>
              <div class="fact"><dt>Agent</dt><dd class={node.agent.silent ? "bad" : ""}>heard {ago(node.agent.heard_at)}{node.agent.interval_ms !== null && `, every ${short(node.agent.interval_ms / 1000)} s`}</dd></div>
            </> : <div class="fact"><dt>Agent</dt><dd>has sent no samples</dd></div>}
          </dl>
          {node.agent && <OnlyNow what="What its agent is told to sample is"><AgentPanel node={name} /></OnlyNow>}
          <Panel title={`Runs ${node.runs}`}>{runs.length === 0 ? <p>None within seven days.</p> :
            <ul class="lines">{runs.map((run) => <li key={run.uid}><Link to={`/runs/${run.uid}/nodes?node=${encodeURIComponent(name)}`}>{run.job || "no job name"} {run.uid.slice(0, 8)}</Link> <span class="dim">{outcome_words(run)} · {ago(run.heard_at)}</span></li>)}</ul>}
            {node.runs > runs.length && <p class="dim">Only the newest {runs.length} are shown.</p>}</Panel>
          <Panel title={`Issues ${node.issues}`}>{issues.length === 0 ? <p class="good">None within seven days.</p> :
            <ul class="lines">{issues.map(({ run, job, issue }) => <li key={`${issue.key}/${issue.episode}`}><Severity of={issue.severity} /> <IssueLink issue={issue} />
              <span class="dim"> {run && <><Link to={`/runs/${run}`}>{job || run.slice(0, 8)}</Link> · </>}{ago(issue.starts_at)}</span></li>)}</ul>}
            {node.issues > issues.length && <p class="dim">Only the newest {issues.length} are shown.</p>}</Panel>
        </>)}</Asked>
    </>
  );
}
