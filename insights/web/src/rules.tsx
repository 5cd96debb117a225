// Rules of a run: what each judged, what it found, and which cannot judge and why.
import { useEffect, useState } from "preact/hooks";
import { ask, type IssueRow, type RuleRow, type RunPage } from "./api";
import { Asked, IssueLink, Moment, Panel, Severity } from "./parts";
import { Head } from "./run_head";
import { WideTable } from "./wide_table";

const judged = (rule: RuleRow) => (rule.evaluations.ok ?? 0) + (rule.evaluations.hit ?? 0);
export const lacks = (rule: RuleRow) => rule.status === "Error" || rule.missing.length > 0 || (rule.reason !== null && judged(rule) === 0);

const STATUS: Record<string, string> = { NoData: "waits for data", InProgress: "judges", IssuesFound: "found issues", NoIssuesFound: "found nothing", Error: "failed", Stopped: "stopped" };

// What was found first, then what cannot judge, then what judges, then what waits.
function grade(rule: RuleRow, issues: IssueRow[]): number {
  if (issues.some((one) => one.rule === rule.rule)) return 0;
  if (lacks(rule)) return 1;
  return judged(rule) > 0 ? 2 : 3;
}

// How people judged what a rule found, in all runs that the store knows.
interface Verdicts { rule: string; fired: number; useful: number; noise: number; precision?: number }

function useVerdicts(): Map<string, Verdicts> {
  const [known, know] = useState<Verdicts[]>([]);
  useEffect(() => { ask<{ items: Verdicts[] }>("/rules").then((answer) => know(answer.items), () => undefined); }, []);  // without it the column says nothing
  return new Map(known.map((one) => [one.rule, one]));
}

const precision_words = (one: Verdicts | undefined) => one?.precision === undefined ? "no verdict" : `${Math.round(100 * one.precision)} % of ${one.useful + one.noise}`;

function Row({ rule, issues, verdicts }: { rule: RuleRow; issues: IssueRow[]; verdicts: Verdicts | undefined }) {
  const mine = issues.filter((one) => one.rule === rule.rule);
  const { insufficient_data: few = 0, not_applicable: other = 0, error: failed = 0, hit = 0 } = rule.evaluations;
  return (
    <tr class={`rule-row${judged(rule) === 0 && mine.length === 0 ? " dim" : ""}`}>
      <th scope="row">{rule.rule}{rule.type !== rule.rule && <span class="dim"> {rule.type}</span>}<span class="dim"> v{rule.version}</span></th>
      <td>{STATUS[rule.status] ?? rule.status}</td>
      <td class="number">{judged(rule)}</td>
      <td class="number">{hit}</td>
      <td class="number">{precision_words(verdicts)}</td>
      <td>{mine.length > 0 && <ul class="lines">{mine.map((one) => <li key={`${one.key}/${one.episode}`}><Severity of={one.severity} /> <IssueLink issue={one} /></li>)}</ul>}
        {[rule.reason, rule.missing.length > 0 && `lacks ${rule.missing.join(", ")}`, few > 0 && `${few} times too little data`, other > 0 && `${other} times not applicable`, failed > 0 && `${failed} times an error`].filter(Boolean).join("; ")}</td>
      <td><Moment at={rule.time} /></td>
    </tr>
  );
}

export function RulesScreen({ uid }: { uid: string }) {
  const verdicts = useVerdicts();
  return (
    <Asked<RunPage> name={`/runs/${uid}/of-rules`} load={() => ask(`/runs/${encodeURIComponent(uid)}`)}>{({ run, rules, issues }) => {
      const sorted = [...rules].sort((a, b) => grade(a, issues) - grade(b, issues) || a.rule.localeCompare(b.rule));
      document.title = `Rules of ${run.job ?? run.uid} · Tocsin`;
      return <>
        <Head run={run} at="rules" />
        <Panel title={`Rules ${rules.length}`}>
          {rules.length === 0 ? <p>No rule has spoken yet. Each says once per run that it judges, or what it lacks.</p> :
            <WideTable label="rules" kind="rules"><thead><tr><th scope="col">Rule</th><th scope="col">Status</th><th scope="col" class="number">Judged</th><th scope="col" class="number">Hits</th><th scope="col" class="number">Useful</th><th scope="col">Found, or why not</th><th scope="col">Said</th></tr></thead>
              <tbody>{sorted.map((rule) => <Row key={rule.rule} rule={rule} issues={issues} verdicts={verdicts.get(rule.rule)} />)}</tbody></WideTable>}
          <p class="dim">A rule tells its counts when its status changes and when the run ends. <i>Useful</i> is the share of verdicts in all runs that call what it found useful.</p>
        </Panel>
      </>;
    }}</Asked>
  );
}
