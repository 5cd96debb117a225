// Which issues were first signs. The engine names causes when it reports an issue; a rule that waits for a completed step may report an
// earlier step a moment later.
import type { IssueRow } from "./api";

type Placed = Pick<IssueRow, "key" | "attempt" | "mode" | "step" | "starts_at">;

// Those that began at an earlier step of the same attempt and were not over when this one began.
export function begun_before(one: Placed, issues: IssueRow[]): IssueRow[] {
  return issues.filter((other) => other.key !== one.key && other.attempt === one.attempt && other.mode === one.mode &&
    other.step !== null && one.step !== null && other.step < one.step &&
    (other.ends_at === null || Date.parse(other.ends_at) >= Date.parse(one.starts_at)));
}

export const is_first_sign = (one: IssueRow, issues: IssueRow[]): boolean => one.first_sign && begun_before(one, issues).length === 0;
