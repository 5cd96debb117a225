// The losses of the runs that are in view, as small curves: asked together, once the list rests.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, type RunRow } from "./api";
import { short } from "./chart";
import { is_paused } from "./paused";
import { changed } from "./stream";

export interface Spark { run: string; name: string; width: number; x: number[]; mean: (number | null)[]; bad: number[]; last: number | null }
interface Known { spark: Spark | null; step: number | null }  // as of that step of the run

const MOST = 64;    // runs of one question
const REST = 150;   // ms without a move of the list
const AGAIN = 5000; // ms, while runs go on
const WIDE = 96;
const HIGH = 22;

// By uid. A run that goes on is asked for again, but not as often as it moves.
export function useSparks(shown: RunRow[]): Map<string, Spark> {
  const known = useRef(new Map<string, Known>());
  const [, drawn] = useState(0);
  const asked_at = useRef(0);
  const names = shown.map((run) => `${run.uid}@${run.step}`).join();
  useEffect(() => {
    const fresh = shown.filter((run) => !known.current.has(run.uid));
    const moved = shown.filter((run) => known.current.has(run.uid) && (known.current.get(run.uid)!.step !== run.step || !known.current.get(run.uid)!.spark));
    if (fresh.length + moved.length === 0) return undefined;
    const wait = fresh.length > 0 ? REST : Math.max(REST, asked_at.current + AGAIN - Date.now());
    const due = window.setTimeout(() => {
      if (is_paused() && fresh.length === 0) return;
      asked_at.current = Date.now();
      const wanted = [...fresh, ...moved].slice(0, MOST);
      ask<{ items: Spark[] }>(`/sparklines?runs=${wanted.map((run) => run.uid).join()}`).then(({ items }) => {
        const found = new Map(items.map((one) => [one.run, one]));
        for (const run of wanted) known.current.set(run.uid, { spark: found.get(run.uid) ?? null, step: run.step });
        drawn((count) => count + 1);
      }, () => undefined);  // the column says nothing until the list moves again
    }, wait);
    return () => window.clearTimeout(due);
  }, [names, changed.value]);
  return new Map([...known.current].flatMap(([uid, one]) => (one.spark ? [[uid, one.spark] as [string, Spark]] : [])));
}

// A line through what is finite; where nothing is the line is broken, and a stroke stands below.
export function SparkLine({ of }: { of: Spark }) {
  const finite = [...of.mean, of.last].filter((one): one is number => one !== null);
  const bad = of.bad.reduce((sum, count) => sum + count, 0);
  const first = of.x[0] ?? 0;
  const span = Math.max(1, (of.x[of.x.length - 1] ?? 0) - first);
  const least = Math.min(...finite);
  const high = Math.max(...finite) - least;
  const across = (x: number) => 1 + (x - first) / span * (WIDE - 2);
  let pen = "M";
  const path = of.mean.flatMap((value, at) => {
    if (value === null) { pen = "M"; return []; }
    const part = `${pen}${across(of.x[at]!).toFixed(1)} ${(HIGH - 5 - (high > 0 ? (value - least) / high : 0.5) * (HIGH - 7)).toFixed(1)}`;
    pen = "L";
    return [part];
  }).join("");
  const now = of.last === null ? "not finite" : short(of.last);
  const said = `${of.name}: ${finite.length > 0 ? `from ${short(finite[0]!)}, between ${short(least)} and ${short(least + high)}, ` : ""}now ${now}${bad > 0 ? `, ${bad} not finite` : ""}`;
  return (
    <span class="spark" role="img" aria-label={said} title={said}>
      <svg width={WIDE} height={HIGH} aria-hidden="true"><path d={path} fill="none" stroke="var(--accent)" stroke-width="1.5" stroke-linejoin="round" />
        {of.bad.map((count, at) => count > 0 && <rect key={at} x={across(of.x[at]!) - 1} y={HIGH - 4} width="2" height="4" fill="var(--bad)" />)}</svg>
      <span class={of.last === null ? "bad" : ""}>{now}</span></span>
  );
}
