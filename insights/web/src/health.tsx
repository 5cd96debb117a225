// What the elements of tensors are at one step: bars, and which tensor was bad first.
import { short } from "./chart";

export interface HealthItem {
  name: string; role: string; shape: string | null; step: number; elements: number; neg_inf: number; negative: number; zero: number;
  positive: number; pos_inf: number; nan: number; l2: number | string; usual_l2: number | null; first_bad_step: number | null;
}
export interface FirstBad { name: string; kind: string; role: string; step: number }
export interface Health { mode: string | null; step: number | null; rows_from: number | null; tensors: number; first_bad: FirstBad | null; items: HealthItem[] }

const PARTS = [["neg_inf", "−Inf"], ["negative", "negative"], ["zero", "zero"], ["positive", "positive"], ["pos_inf", "+Inf"], ["nan", "NaN"]] as const;
const MOST_BARS = 16;

export const bad_of = (item: HealthItem) => item.neg_inf + item.pos_inf + item.nan;

export const share = (part: number, all: number) => {
  const percent = 100 * part / all;
  return part === 0 ? "0 %" : percent < 1 ? "<1 %" : part < all && percent > 99 ? ">99 %" : `${Math.round(percent)} %`;
};

export function bar_words(item: HealthItem): string {
  const parts = PARTS.filter(([key]) => item[key] > 0).map(([key, word]) =>
    key === "negative" || key === "zero" || key === "positive" ? `${share(item[key], item.elements)} ${word}` : `${item[key]} ${word}`);
  return parts.join(", ");
}

function Bar({ item, chosen, choose }: { item: HealthItem; chosen: boolean; choose: (name: string) => void }) {
  return (
    <li data-name={item.name}>
      <button type="button" class="plain" aria-pressed={chosen} onClick={() => choose(item.name)}>{item.name}</button>
      <span class="bar-of" aria-hidden="true">{PARTS.map(([key]) => item[key] > 0 && <i key={key} class={key} style={{ flexGrow: String(Math.max(item[key], item.elements / 50)) }} />)}</span>
      <span class={bad_of(item) > 0 ? "bad" : "dim"}>{bar_words(item)}</span>
    </li>
  );
}

export function HealthBars({ health, selected, choose }: { health: Health; selected: string | null; choose: (name: string) => void }) {
  if (health.step === null) return null;
  const grade = (item: HealthItem) => (item.name === selected ? 0 : bad_of(item) > 0 ? 1 : 2);
  const shown = health.items.map((item, at) => ({ item, at })).sort((a, b) => grade(a.item) - grade(b.item) || a.at - b.at).slice(0, MOST_BARS)
    .sort((a, b) => a.at - b.at).map((one) => one.item);
  const bad = health.items.filter((item) => bad_of(item) > 0).length;
  return (
    <section class="panel" id="health">
      <h2>Elements at step {health.step}</h2>
      {health.first_bad ? <p class="bad">First that was not finite, in the order of a training step: <b>{health.first_bad.name}</b> at step {health.first_bad.step}.</p>
        : <p class="good">Nothing was ever not finite.</p>}
      <p class="dim">{health.rows_from ? `The values of this step are older than store.keep.tensors keeps them. Those from step ${health.rows_from} on are there.` : bad > 0 ? `${bad} of ${health.items.length} tensors have elements that are not finite at this step.` : "All elements are finite at this step."}</p>
      <ul class="bars">{shown.map((item) => <Bar key={item.name} item={item} chosen={item.name === selected} choose={choose} />)}</ul>
      {health.tensors > shown.length && <p class="dim">{health.tensors - shown.length} more tensors: choose one, or narrow the filter.</p>}
    </section>
  );
}

// Far from the median of the steps before: ten times, or a tenth.
const FAR = 1;
export type Grade = "bad" | "far" | "usual" | "unknown";
export function grade_of(item: HealthItem): Grade {
  if (bad_of(item) > 0 || typeof item.l2 !== "number") return "bad";
  if (item.usual_l2 === null || item.usual_l2 <= 0 || item.l2 <= 0) return "unknown";
  return Math.abs(Math.log10(item.l2 / item.usual_l2)) >= FAR ? "far" : "usual";
}
export const grade_words = (item: HealthItem): string => {
  const grade = grade_of(item);
  if (grade === "bad") return bar_words(item);
  const size = typeof item.l2 === "number" ? `l2 ${short(item.l2)}` : "";
  return item.usual_l2 === null ? `${size}, nothing before it` : `${size}, usual ${short(item.usual_l2)}`;
};
