// What stands above every screen of a run.
import type { RunRow } from "./api";
import { Kept } from "./keep";
import { Link, Moment } from "./parts";
import { moment } from "./past";
import { attempt_words, outcome_words } from "./runs";
import { show_run } from "./shown_run";
import { OnlyNow } from "./then";

export function Head({ run, at }: { run: RunRow; at: "overview" | "tensors" | "nodes" | "timeline" | "ranks" | "rules" | "history" }) {
  show_run(run);
  const tab = (name: string, to: string, here: boolean) =>
    here ? <b aria-current="page">{name}</b> : <Link to={to}>{name}</Link>;
  return (
    <header class="head">
      <p class="dim">run {run.uid}</p>
      <h1>{run.job || "no job name"}: {outcome_words(run)}</h1>
      <p>{run.step !== null && <>step <b>{run.step}</b> · </>}{run.world_size} {run.world_size === 1 ? "rank" : "ranks"}{attempt_words(run.attempt)} · began <Moment at={run.started_at} />{run.ended_at && <> · ended <Moment at={run.ended_at} /></>}</p>
      {Object.keys(run.labels).length > 0 && <p class="dim">{Object.entries(run.labels).map(([name, value]) => `${name}=${value}`).join(" ")}</p>}
      {at === "overview" && !moment.value ? <Kept run={run} /> : run.pin && <p class="dim">Pinned by {run.pin.by}, <Moment at={run.pin.at} /></p>}
      <nav class="tabs" aria-label="of this run">{tab("Overview", `/runs/${run.uid}`, at === "overview")}{tab("Tensors", `/runs/${run.uid}/tensors`, at === "tensors")}{tab("Nodes", `/runs/${run.uid}/nodes`, at === "nodes")}{tab("Timeline", `/runs/${run.uid}/timeline`, at === "timeline")}{tab("Ranks", `/runs/${run.uid}/ranks`, at === "ranks")}{tab("Rules", `/runs/${run.uid}/rules`, at === "rules")}{tab("History", `/runs/${run.uid}/history`, at === "history")}
        <OnlyNow><a class="report" href={`/api/v1/runs/${encodeURIComponent(run.uid)}/report.html`} download>Download report</a>{" "}
        <a href={`/api/v1/runs/${encodeURIComponent(run.uid)}/report.tar`} download title="page, notebook and a document of each rule">as a bundle</a></OnlyNow></nav>
    </header>
  );
}
