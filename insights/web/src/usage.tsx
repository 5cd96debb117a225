// How much of its nodes a run has used: a line for each worker's node and resource.
import { useAsked } from "./curves";
import { useSlow } from "./slow";
import { amount, type Worker } from "./system_data";
import { turn_of } from "./stream";
import { WideTable } from "./wide_table";

interface Line {
  node: string; workers: Worker[]; what: string; unit: string; samples: number; width_ms: number;
  min: number; mean: number; p50: number; p90: number; p95: number; p99: number; max: number;
}
const WORDS: Record<string, string> = { total_cpu: "Total CPU", total_gpu: "Total GPU", cpu_memory: "CPU memory", gpu_memory: "GPU memory",
  io_wait: "I/O wait", network: "Network, per sample", network_rate: "Network" };
const COLUMNS: [keyof Line & ("min" | "p50" | "p90" | "p95" | "p99" | "max"), string][] =
  [["min", "min"], ["p50", "p50"], ["p90", "p90"], ["p95", "p95"], ["p99", "p99"], ["max", "max"]];

const said = (line: Line, value: number) => (line.unit === "1" ? `${(value * 100).toFixed(1)} %` : amount(value, line.unit === "By/s" ? "B/s" : "B"));
const who = (line: Line) => {
  const names = line.workers.map((one) => one.name);
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
};

export function UsagePanel({ uid, from, to }: { uid: string; from?: string; to?: string }) {
  const turn = useSlow(turn_of(uid));
  const query = [["from", from], ["to", to]].filter(([, value]) => value).map(([name, value]) => `${name}=${value}`).join("&");
  const { answer, error } = useAsked<{ items: Line[] }>(`/runs/${encodeURIComponent(uid)}/resources${query && `?${query}`}`, turn);
  if (error) return <section class="panel" id="usage"><h2>Resource utilization</h2><p class="fault" role="alert">{error.message}</p></section>;
  if (!answer) return null;
  // Where it is known per second, what a sample has says nothing more.
  const items = answer.items.filter((line) => line.what !== "network" || !answer.items.some((one) => one.node === line.node && one.what === "network_rate"));
  const wide = answer.items.find((line) => line.width_ms > 1);
  return (
    <section class="panel" id="usage">
      <h2>Resource utilization</h2>
      {answer.items.length === 0 ? <p class="dim">No node of this run has sent samples: an agent does, <code>tocsin up</code> on this node, <code>tocsin collect</code> on others.</p> : <>
        <WideTable label="Resource utilization" kind="grid">
          <thead><tr><th scope="col">node</th><th scope="col">resource</th>{COLUMNS.map(([name, word]) => <th key={name} scope="col">{word}</th>)}<th scope="col">samples</th></tr></thead>
          <tbody>{items.map((line, at) => (
            <tr key={`${line.node} ${line.what}`} data-node={line.node} data-what={line.what}>
              <th scope="row">{at > 0 && items[at - 1]!.node === line.node ? <span class="said">{line.node}</span> : <>{line.node}<span class="dim"> {who(line)}</span></>}</th><td>{WORDS[line.what] ?? line.what}</td>
              {COLUMNS.map(([name]) => <td key={name}>{said(line, line[name])}</td>)}<td>{line.samples}</td></tr>))}</tbody></WideTable>
        <p class="dim">CPU, GPU and I/O wait are means over the cores or GPUs of a node at one time; percentiles are over time, each sample as long as it held{wide && `, here over means of ${wide.width_ms / 1000} s, because there are too many samples`}.</p></>}
    </section>
  );
}
