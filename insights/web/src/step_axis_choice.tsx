// What the charts of a run are drawn by: kept in the address.
import { place, set_query } from "./place";
import { X_NAMES, X_WORDS, type XName } from "./step_axis";

type Missing = Record<XName, string | null>;
const asked = (): XName => { const text = place.value.query.get("x"); return X_NAMES.find((one) => one === text) ?? "step"; };
// What the address asks for, as far as the run has it.
export const x_shown = (missing: Missing): XName => (missing[asked()] === null ? asked() : "step");

// `unknown`: modes of charts of which nothing tells where their steps lie.
export function AxisChoice({ missing, unknown }: { missing: Missing; unknown: string[] }) {
  const wanted = missing[asked()];
  return <>
    <label class="x-axis">x <select value={x_shown(missing)} onChange={(event) => set_query("x", event.currentTarget.value === "step" ? "" : event.currentTarget.value)}>
      {X_NAMES.map((one) => <option key={one} value={one} disabled={missing[one] !== null}>{X_WORDS[one]}{missing[one] !== null && ` (${missing[one]})`}</option>)}</select></label>
    {unknown.length > 0 && <span class="dim">Charts of {[...new Set(unknown)].join(", ")} are by step: no {X_WORDS[x_shown(missing)]} is known there.</span>}
    {wanted !== null && <span class="dim">By step: {wanted}.</span>}
  </>;
}

// The next one that the run has.
export function turn_axis(): void {
  const select = document.querySelector<HTMLSelectElement>("main .x-axis select");
  const all = [...select?.options ?? []].filter((one) => !one.disabled);
  if (!select || all.length < 2) return;
  set_query("x", all[(all.findIndex((one) => one.value === select.value) + 1) % all.length]!.value.replace(/^step$/, ""));
}
