// How many points of a series are drawn and stored, and what was lost on the way, in words.
import type { Curve, Curves, Loss } from "./curve_data";

const many = (count: number, one: string, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;
const steps_of = (one: Loss) => one.first_step === null ? "" : one.first_step === one.last_step ? ` (step ${one.first_step})` : ` (steps ${one.first_step} to ${one.last_step})`;

// "600 points drawn, of 3000 values in these steps"
export function drawn_words(curve: Curve): string {
  const here = curve.n ? curve.n.reduce((sum, one) => sum + one, 0) + curve.bad.reduce((sum, row) => sum + row[1]! + row[2]! + row[3]!, 0) : curve.x0.length;
  const all = here === curve.stored ? `${curve.stored} values stored` : `${here} values in these steps, ${curve.stored} stored in all`;
  return `${many(curve.x0.length, "point")} drawn of ${all}`;
}

function loss_words(one: Loss): string {
  const whose = one.workers > 1 ? ` of ${one.workers} workers` : "";
  const lost = `${one.values > 0 ? `${many(one.values, "value")} in ` : ""}${many(one.frames, "record")}${whose}`;
  if (one.reason === "queue_full") return `Lost: ${lost}, dropped by the training process because its queue was full${steps_of(one)}. They may be of any curve.`;
  if (one.reason === "unreadable") return `Lost: ${many(one.values, "value")}${steps_of(one)} that curves.db had and that cannot be read any more. Their buckets are there.`;
  if (one.reason === "never_came") return `Lost: ${lost} never came, and nobody said why.`;
  if (one.reason === "overhead") return `Measured less often from step ${one.first_step ?? 0} on, to keep the cost of measuring in its budget.`;
  const why = one.reason.replaceAll("_", " ");
  return one.frames > 0 ? `Lost: ${lost}, ${why}${steps_of(one)}.` : `The training process could not send some records: ${why.replace(/^delivery failed: /, "")}.`;
}

// Nothing if nothing was lost.
export function lost_words(curves: Curve[], answer: Curves): string[] {
  const repeats = curves.reduce((sum, one) => sum + one.repeats, 0);
  return [...(answer.rows_from ? [`Single values before step ${answer.rows_from} are older than store.keep keeps them. Their ${answer.width > 1 ? `buckets of ${answer.width} steps` : "buckets"} have the least, the greatest and the mean.`] : []),
    ...answer.lost.map(loss_words),
    ...(answer.refused > 0 ? [`Left out: ${many(answer.refused, "value")}, because a run may have 200 000 series.`] : []),
    ...(repeats > 0 ? [`Left out: ${many(repeats, "value")} for steps that had one already.`] : [])];
}
