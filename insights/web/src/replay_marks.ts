// Where each value, or each rule, of a replay would first have fired: as marks on the chart of the issue.
import { signal } from "@preact/signals";
import type { Mark } from "./marks";

export interface ReplayRow { attempt: number; value: string; first_step: number | null; first_mode: string | null; first_time: string | null; issues: number }
export interface ReplayResult { parameter: string; rows: ReplayRow[]; gaps: number; failed: { why: string }[] }

// `of`: the issue that was looked at.
export const replayed = signal<{ of: string; marks: Mark[] } | null>(null);
export const marks_of_issue = (key: string): Mark[] => (replayed.value?.of === key ? replayed.value.marks : []);

const MOST_NAMED = 3;
const named = (values: string[]) => values.slice(0, MOST_NAMED).join(", ") + (values.length > MOST_NAMED ? ` and ${values.length - MOST_NAMED} more` : "");
const on_chart = (row: ReplayRow) => row.first_step !== null && row.first_mode !== "eval" && row.first_mode !== "predict";
const said = (parameter: string, values: string[]) => (parameter === "rule" ? named(values) : `${parameter} ${named(values)}`);

// Values that fire at the same step are one mark.
export function marks_of_replay({ parameter, rows }: ReplayResult): Mark[] {
  const by_step = new Map<number, string[]>();
  for (const row of rows) if (on_chart(row)) by_step.set(row.first_step!, [...(by_step.get(row.first_step!) ?? []), row.value]);
  return [...by_step].map(([x, values]) => {
    const of = said(parameter, [...new Set(values)]);
    return { x, kind: "replay", label: of, text: `step ${x}: would fire with ${parameter === "rule" ? "the rule " : ""}${of}` };
  });
}

export function replay_sentences({ parameter, rows }: ReplayResult): string[] {
  const quiet = [...new Set(rows.map((row) => row.value))].filter((value) => rows.every((row) => row.value !== value || row.issues === 0));
  const out: string[] = [];
  if (rows.some(on_chart)) out.push("△ on the chart of this page marks the first step of each.");
  if (rows.some((row) => row.issues > 0 && !on_chart(row))) out.push("First steps outside of training are not on the chart.");
  if (quiet.length > 0 && rows.every((row) => row.issues === 0)) out.push("Nothing fires.");
  else if (quiet.length > 0) out.push(`Nothing fires with ${said(parameter, quiet)}.`);
  return out;
}
