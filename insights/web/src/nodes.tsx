// Which node, GPU or core is slow, full or idle; since when; did the step time follow?
import { useMemo, useState } from "preact/hooks";
import { ask, Refused, type RunPage } from "./api";
import { stretches_of_time } from "./attempts";
import { clock, clock_words } from "./clock";
import { CoresPanel } from "./cores";
import { useAsked } from "./curves";
import { exactly } from "./curve_data";
import type { Happened } from "./marks";
import { Marks } from "./marks_list";
import { Asked } from "./parts";
import { place, set_queries, set_query } from "./place";
import { Head } from "./run_head";
import { useSlow } from "./slow";
import { label_of, type NodeRow, type Nodes, type Samples, type SystemAnswer } from "./system_data";
import { TimeFigure, type Form } from "./time_figure";
import type { Hardware } from "./hardware";
import { time_marks } from "./time_marks";
import { UsagePanel } from "./usage";
import { ticks } from "./stream";

const SHARE = { unit: "%", factor: 100, top: 102 };
const FORMS: (Form & { metric: RegExp })[] = [
  { id: "cpu", title: "CPU %", metric: /^system\.cpu\.busy$/, ...SHARE },
  { id: "iowait", title: "I/O wait %", metric: /^system\.cpu\.iowait$/, ...SHARE },
  { id: "network", title: "Network, bytes per second", metric: /^system\.network\.io\.rate$/, unit: "B/s", factor: 1 },
  { id: "gpu", title: "GPU %", metric: /^hw\.gpu\.utilization$/, ...SHARE },
  { id: "gpu_memory", title: "GPU memory %", metric: /^hw\.gpu\.memory\.utilization$/, ...SHARE },
  { id: "memory", title: "Host memory % in use", metric: /^system\.memory\.utilization$/, ...SHARE },
  { id: "disk", title: "Disk, bytes per second", metric: /^system\.disk\.io\.rate$/, unit: "B/s", factor: 1 },
  { id: "power", title: "GPU power", metric: /^hw\.power$/, unit: "W", factor: 1 },
  { id: "temperature", title: "GPU temperature", metric: /^hw\.temperature$/, unit: "°C", factor: 1 },
];
// Samples that were kept before rates were.
const WITHOUT_RATE: typeof FORMS = [
  { id: "network", title: "Network, bytes per sample", metric: /^system\.network\.io$/, unit: "B", factor: 1 },
  { id: "disk", title: "Disk, bytes per sample", metric: /^system\.disk\.io$/, unit: "B", factor: 1 },
];
const MOST_CHIPS = 16;  // the heat map has a row for each
const MOST_LINES = 8;   // of a chart

const asked = (name: string) => place.value.query.get(name) ?? "";
const number_of = (name: string) => (/^\d+$/.test(asked(name)) ? Number(asked(name)) : null);
const list_of = (name: string) => (asked(name) ? asked(name).split(",") : ["mean"]);

// What the chosen chips mean as series.
function names_of(node: NodeRow): string {
  const cores = list_of("cpu").map((one) => (one === "mean" ? "mean" : `cpu\\.logical_number=${one.replace(/\D/g, "")}`)).join("|");
  const devices = list_of("gpu").map((one) => {
    const device = node.gpus[Number(one.replace(/\D/g, ""))];
    return one === "mean" ? "mean" : `hw\\.id=${exactly([device ?? ""])}`;
  }).join("|");
  const of = list_of("gpu").includes("mean") ? ".*" : `(?:.*,)?(?:${devices})(?:,.*)?`;
  const rate = (metric: string) => metric.replaceAll(".", "\\.") + (node.metrics.some((one) => one.metric === `${metric}.rate`) ? "\\.rate" : "");
  return [`system\\.cpu\\.(?:busy|iowait)\\{(?:${cores})\\}`, `hw\\.gpu\\.(?:memory\\.)?utilization\\{(?:${devices})\\}`,
    `${rate("system.network.io")}\\{${asked("net") === "each" ? "network.*" : "total"}\\}`, "system\\.memory\\.utilization\\{system\\.memory\\.state=used\\}",
    `${rate("system.disk.io")}\\{.*\\}`, `hw\\.(?:power|temperature)\\{${of}\\}`].join("|");
}

function Chips({ kind, all }: { kind: "cpu" | "gpu"; all: string[] }) {
  const chosen = list_of(kind);
  const turn = (one: string) => {
    const next = chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one].slice(-MOST_LINES);
    set_query(kind, next.length === 0 || next.join() === "mean" ? "" : next.join());
  };
  const drawn = ["mean", ...all.slice(0, MOST_CHIPS), ...chosen.filter((one) => one !== "mean" && all.indexOf(one) >= MOST_CHIPS)];
  return (
    <span class="chips" role="group" aria-label={`${kind} lines`}>{kind.toUpperCase()}: {drawn.map((one) => (
      <button key={one} type="button" aria-pressed={chosen.includes(one)} onClick={() => turn(one)}>{one}</button>))}
      {all.length > MOST_CHIPS && <span class="dim">{all.length - MOST_CHIPS} more: choose rows of the map below</span>}</span>
  );
}

function Controls({ nodes, node, from, to }: { nodes: NodeRow[]; node: NodeRow; from: number; to: number }) {
  const fixed = asked("fix") === "true";
  const move = (lo: number, hi: number) => set_queries({ from: String(Math.max(0, Math.round(lo))), to: String(Math.round(hi)) });
  const wide = to - from;
  return (
    <section class="panel" id="controls">
      <p class="tools"><label>Node <select value={node.node} onChange={(event) => set_queries({ node: event.currentTarget.value, cpu: "", gpu: "" })}>{nodes.map((one) => (
        <option key={one.node} value={one.node}>{one.node}</option>))}</select></label>
        <span class="dim">{node.workers.map((one) => one.name).join(", ") || "no worker has said that it is here"} · {node.cores} cores, {node.gpus.length} GPUs{node.interval_ms > 0 && ` · a sample every ${node.interval_ms / 1000} s`}</span></p>
      <p class="tools"><Chips kind="cpu" all={Array.from({ length: node.cores }, (_, at) => `cpu${at}`)} />
        {node.gpus.length > 0 && <Chips kind="gpu" all={node.gpus.map((_, at) => `gpu${at}`)} />}
        <label>Network <select value={asked("net") || "total"} onChange={(event) => set_query("net", event.currentTarget.value === "total" ? "" : "each")}><option value="total">total</option><option value="each">each interface</option></select></label></p>
      <p class="tools"><span id="range">{clock(from)} to {clock_words(to)}</span>
        <button type="button" disabled={fixed} onClick={() => move(from + wide / 4, to - wide / 4)}>Zoom in</button>
        <button type="button" disabled={fixed} onClick={() => move(from - wide / 2, to + wide / 2)}>Zoom out</button>
        <button type="button" disabled={fixed} onClick={() => move(from - wide / 4, to - wide / 4)}>Pan left</button>
        <button type="button" disabled={fixed} onClick={() => move(from + wide / 4, to + wide / 4)}>Pan right</button>
        {(asked("from") || asked("to")) && <button type="button" onClick={() => set_queries({ from: "", to: "" })}>Whole run</button>}
        <label class="check"><input type="checkbox" checked={fixed} onChange={(event) => set_queries({ fix: event.currentTarget.checked ? "true" : "", from: "", to: "" })} /> Fix timeframe</label></p>
    </section>
  );
}

function Charts({ answer, node, at, point, zoom, happened }: { happened: Happened; answer: SystemAnswer; node: NodeRow; at: number | null; point: (x: number | null) => void; zoom: (from: number | null, to: number | null) => void }) {
  const of = (form: (typeof FORMS)[number]) => answer.series.filter((one) => form.metric.test(one.metric)).slice(0, MOST_LINES);
  const old = (form: (typeof FORMS)[number]) => (of(form).length > 0 ? form : WITHOUT_RATE.find((one) => one.id === form.id) ?? form);
  const drawn = FORMS.map(old).map((form) => ({ form, all: of(form) })).filter((one) => one.all.length > 0);
  const missing = FORMS.slice(0, 7).filter((form) => of(old(form)).length === 0).map((form) => form.title);
  const marks = time_marks(happened, answer.from, answer.to);
  const text = JSON.stringify(happened.attempts ?? []);
  const stretches = useMemo(() => stretches_of_time(happened.attempts ?? []), [text]);
  const labels = (all: Samples[]) => all.map((one) => label_of(one.metric, one.labels, node.gpus));
  return (
    <section class="panel" id="node-charts"><h2>{node.node} over time</h2>
      <Marks marks={marks} />
      <div class="charts">{drawn.map(({ form, all }) => (
        <TimeFigure key={`${node.node} ${form.id}`} form={form} all={all} labels={labels(all)} answer={answer} at={at} point={point} zoom={zoom} marks={marks} stretches={stretches} />))}</div>
      {missing.length > 0 && <p class="dim">Not sampled here: {missing.join(", ")}. {node.gpus.length === 0 && "The node has no GPU that its agent can read. "}Which collectors run is set by <code>collect.collectors</code>.</p>}
      {answer.left_out > 0 && <p class="fault">{answer.left_out} more series are not drawn.</p>}
    </section>
  );
}

function Panels({ uid, nodes, happened }: { uid: string; nodes: Nodes; happened: Happened }) {
  const node = nodes.items.find((one) => one.node === asked("node")) ?? nodes.items[0]!;
  const turn = useSlow(ticks.value.get(uid) ?? 0);
  const [at, point] = useState<number | null>(null);
  const fixed = asked("fix") === "true";
  const from = fixed ? null : number_of("from");
  const to = fixed ? null : number_of("to");
  const range = `${from === null ? "" : `&from=${from}`}${to === null ? "" : `&to=${to}`}`;
  const named = encodeURIComponent(exactly([node.node]));
  const { answer, error } = useAsked<SystemAnswer>(`/runs/${encodeURIComponent(uid)}/system?node=${named}&points=600&limit=128${range}&name=${encodeURIComponent(names_of(node))}`, turn);
  const hardware = (useAsked<Hardware>(`/runs/${encodeURIComponent(uid)}/hardware`, turn).answer?.items ?? []).filter((one) => one.node === node.node);
  const all_happened = { ...happened, hardware };
  const zoom = (lo: number | null, hi: number | null) => { if (!fixed) set_queries({ from: lo === null ? "" : String(lo), to: hi === null ? "" : String(hi) }); };
  const choose = (kind: "cpu" | "gpu", label: string) => {
    const chosen = list_of(kind);
    const next = chosen.includes(label) ? chosen.filter((one) => one !== label) : [...chosen, label].slice(-MOST_LINES);
    set_query(kind, next.length === 0 || next.join() === "mean" ? "" : next.join());
  };
  return <>
    <Controls nodes={nodes.items} node={node} from={from ?? answer?.from ?? node.from} to={to ?? answer?.to ?? node.to} />
    {error && !(error instanceof Refused && error.status === 401) && <p class="fault" role="alert">{error.message}</p>}
    {node.samples_gone && <p class="dim">Older samples of this node gave way to newer ones, because curves.db was larger than <code>insights.max_curve_bytes</code>.</p>}
    {answer && <Charts answer={answer} node={node} at={at} point={point} zoom={zoom} happened={all_happened} />}
    <CoresPanel uid={uid} node={named} gpus={node.gpus} range={range} at={at} point={point} choose={choose} happened={all_happened} />
    <UsagePanel uid={uid} from={from === null ? "" : String(from)} to={to === null ? "" : String(to)} />
    {nodes.without_samples.length > 0 && <p class="dim">No samples of {nodes.without_samples.map((one) => `${one.node} (${one.workers.map((worker) => worker.name).join(", ")})`).join(", ")}: no agent runs there.</p>}
  </>;
}

function Shown({ uid, happened }: { uid: string; happened: Happened }) {
  const turn = useSlow(ticks.value.get(uid) ?? 0);
  const { answer, error } = useAsked<Nodes>(`/runs/${encodeURIComponent(uid)}/nodes`, turn);
  if (error) return error instanceof Refused && error.status === 401 ? null : <p class="fault" role="alert">{error.message}</p>;
  if (!answer) return null;
  if (answer.items.length > 0) return <Panels uid={uid} nodes={answer} happened={happened} />;
  return (
    <section class="panel" id="no-nodes"><h2>No samples</h2>
      <p class="dim">{answer.without_samples.length > 0 ? `No agent has sent samples of ${answer.without_samples.map((one) => one.node).join(", ")}.` : "No agent has sent samples of a node of this run."} An agent runs in <code>tocsin up</code>, and on other nodes as:</p>
      <pre><code>tocsin collect</code></pre></section>
  );
}

export function NodesScreen({ uid }: { uid: string }) {
  return (
    <Asked<RunPage> name={`/runs/${uid}`} load={() => ask(`/runs/${encodeURIComponent(uid)}`)}>{(answer) => {
      document.title = `${answer.run.job ?? answer.run.uid}: nodes · Tocsin`;
      return <><Head run={answer.run} at="nodes" /><Shown uid={answer.run.uid} happened={{ ...answer, uid: answer.run.uid }} /></>;
    }}</Asked>
  );
}
