// Where in the model an issue is: all tensors in model order at its step, and the steps before it as a strip.
import type { Issue } from "./api";
import type { Hardware } from "./hardware";
import { marks_of, type Happened } from "./marks";
import { restart_marks } from "./attempts";
import { useAsked } from "./curves";
import { ask_heat, type Heat } from "./heat_data";
import { HeatFigure } from "./heat_figure";
import { grade_of, grade_words, type Grade, type Health } from "./health";
import { Link } from "./parts";
import { go } from "./place";

const BEFORE = 60;  // steps of the strip
const BEHIND = 11;
const WORDS: [Grade, string][] = [["bad", "not finite"], ["far", "ten times or a tenth of usual"], ["usual", "usual"], ["unknown", "nothing to compare"]];

export function WhereInTheModel({ issue, run, happened }: { issue: Issue; run: string; happened: Happened }) {
  const here = `/runs/${encodeURIComponent(run)}`;
  const mode = issue.mode && issue.mode !== "global" ? `&mode=${issue.mode}` : "";
  const step = issue.step;
  const health = useAsked<Health>(step === null ? null : `${here}/health?step=${step}&limit=500${mode}`, 0).answer;
  const near = step === null ? "" : `&from=${Math.max(0, step - BEFORE)}&to=${step + BEHIND}`;
  const heat = useAsked<Heat>(step === null ? null : `${here}/heatmap?format=bin&max_rows=60&cols=200${near}${mode}`, 0, ask_heat).answer;
  const hardware = useAsked<Hardware>(step === null ? null : `${here}/hardware`, 0).answer?.items;
  if (step === null || !health || health.items.length === 0) return null;
  const first = health.first_bad;
  const tab = (name: string) => `/runs/${run}/tensors?sel=${encodeURIComponent(name)}&step=${step}`;
  const bad = health.items.filter((item) => grade_of(item) === "bad");
  const far = health.items.filter((item) => grade_of(item) === "far");
  const named = [...new Set([...(first && first.kind === "tensor" ? [first.name] : []), ...bad.map((one) => one.name), ...far.map((one) => one.name)])].slice(0, 5);
  return (
    <section class="panel" id="where-model">
      <h2>Where in the model</h2>
      <p>{first ? <>First that was not finite: <b class="bad">{first.name}</b> at step {first.step}. </> : "All tensors are finite. "}
        At step {step}: {bad.length} of {health.items.length} tensors not finite, {far.length} far from usual.</p>
      <ol class="model">{health.items.map((item) => (
        <li key={item.name} class={`${grade_of(item)}${first?.name === item.name ? " first" : ""}`} data-name={item.name}>
          <Link to={tab(item.name)} kind="cell"><span class="said">{item.name}: {grade_words(item)}{first?.name === item.name ? ", first that was not finite" : ""}</span></Link></li>))}</ol>
      <p class="legend">{WORDS.filter(([grade]) => health.items.some((item) => grade_of(item) === grade)).map(([grade, word]) => <span key={grade}><i class={grade} /> {word}</span>)}
        {first?.kind === "tensor" && <span><i class="first" /> first</span>}</p>
      {named.length > 0 && <p class="dim">{named.map((name, at) => <span key={name}>{at > 0 && ", "}<Link to={tab(name)}>{name}</Link></span>)}{bad.length + far.length > named.length && ` and ${bad.length + far.length - named.length} more`}</p>}
      {health.tensors > health.items.length && <p class="dim">{health.tensors - health.items.length} more tensors are not shown; those that were bad are.</p>}
      {heat && heat.rows.length > 0 && heat.lo !== null && <HeatFigure title={`${heat.stat} around step ${step}`} heat={heat} marks={[...marks_of({ ...happened, hardware }), ...restart_marks(heat.restarts, heat.mode ?? "train", run)]} selected={null} most={180} choose={(name) => go(tab(name))} />}
      <p><Link to={`/runs/${run}/tensors?step=${step}`}>All tensors of the run</Link></p>
    </section>
  );
}
