// Samples of nodes as the server sends them, and in words what is drawn of them.
import { short, type Line } from "./chart";
import { clock, clock_words } from "./clock";

export interface Worker { name: string; rank: number }
export interface NodeRow {
  node: string; workers: Worker[]; from: number; to: number; first: string; last: string; cores: number; gpus: string[];
  interval_ms: number; metrics: { metric: string; series: number }[]; samples_gone: boolean;
}
export interface Nodes { items: NodeRow[]; without_samples: { node: string; workers: Worker[] }[] }
export interface Samples {
  node: string; name: string; metric: string; labels: string; unit: string | null; stored: number; x0: number[]; n: number[];
  min: (number | null)[]; max: (number | null)[]; mean: (number | null)[]; bad: number[][];
}
export interface SystemAnswer { width: number; from: number; to: number; series: Samples[]; left_out: number }

export const attribute = (labels: string, key: string) => labels.split(",").find((one) => one.startsWith(`${key}=`))?.slice(key.length + 1) ?? "";

// "cpu3", "gpu0", "eth0 receive": what a line is called beside others of its chart.
export function label_of(metric: string, labels: string, gpus: string[]): string {
  if (labels === "mean" || labels === "total") return labels;
  const core = attribute(labels, "cpu.logical_number");
  if (core) return `cpu${core}`;
  const device = attribute(labels, "hw.id");
  if (device) return gpus.includes(device) ? `gpu${gpus.indexOf(device)}` : device;
  const place = attribute(labels, "network.interface.name") || attribute(labels, "system.device");
  const way = attribute(labels, "network.io.direction") || attribute(labels, "disk.io.direction");
  return [place, way].filter(Boolean).join(" ") || attribute(labels, "system.memory.state") || labels || metric;
}

// Bytes in storage are counted by 1024, bytes per second by 1000, as networks and disks are sold.
export const amount = (value: number, unit: string) => {
  if (unit === "B/s") {
    const power = Math.min(4, Math.max(0, Math.floor(Math.log10(Math.max(1, Math.abs(value))) / 3)));
    return `${Number((value / 1000 ** power).toPrecision(3))} ${["B/s", "kB/s", "MB/s", "GB/s", "TB/s"][power]}`;
  }
  if (unit !== "B") return `${short(Number(value.toPrecision(4)))} ${unit}`;
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, Math.abs(value))) / 10));
  return `${Number((value / 1024 ** power).toPrecision(3))} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
};

export function lines_of_samples(all: Samples[], labels: string[], factor: number): Line[] {
  const times = (column: (number | null)[]) => column.map((one) => (one === null ? null : one * factor));
  return all.map((one, which) => {
    const single = one.n.every((count) => count <= 1);
    return { label: labels[which]!, x: one.x0, mid: times(one.mean), low: single ? null : times(one.min), high: single ? null : times(one.max),
      bad: one.bad.map((row): [number, number] => [row[4]!, row[1]! + row[2]! + row[3]!]), faint: false };
  });
}

export function samples_sentence(one: Samples, label: string, factor: number, unit: string, width: number): string {
  let least = -1;
  let most = -1;
  let last = -1;
  one.x0.forEach((_, at) => {
    if (one.mean[at] === null) return;
    if (least < 0 || one.min[at]! < one.min[least]!) least = at;
    if (most < 0 || one.max[at]! > one.max[most]!) most = at;
    last = at;
  });
  if (last < 0) return `${label}: no samples in this time.`;
  const said = (value: number | null | undefined, at: number) => `${amount(value! * factor, unit)} at ${clock(one.x0[at]!)}`;
  const samples = one.n.reduce((sum, count) => sum + count, 0);
  const bad = one.bad.reduce((sum, row) => sum + row[1]! + row[2]! + row[3]!, 0);
  const values = samples > 1 && one.min[least] === one.max[most] ? `always ${amount(one.min[least]! * factor, unit)}` :
    `least ${said(one.min[least], least)}, greatest ${said(one.max[most], most)}, last ${said(one.mean[last], last)}`;
  return `${label}: ${values}. ${samples} ${samples === 1 ? "sample" : "samples"}` +
    `${one.n.some((count) => count > 1) ? `; 1 point = ${short(width / 1000)} s, the band from least to greatest` : ""}${bad > 0 ? `; ${bad} not finite` : ""}.`;
}

export function samples_read(all: Samples[], labels: string[], factor: number, unit: string, x: number): string {
  const parts = all.flatMap((one, which) => {
    let at = one.x0.length - 1;
    while (at >= 0 && one.x0[at]! > x) at -= 1;
    const value = one.mean[at];
    if (at < 0 || value == null) return [];
    const band = one.n[at]! > 1 && one.min[at] !== one.max[at] ? ` (${amount(one.min[at]! * factor, unit)} to ${amount(one.max[at]! * factor, unit)})` : "";
    return [`${all.length > 1 ? `${labels[which]} ` : ""}${amount(value * factor, unit)}${band}`];
  });
  return `${clock_words(x)}: ${parts.join(" · ") || "no sample"}`;
}
