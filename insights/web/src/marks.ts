// What happened at a step, as signs on every chart: which kinds there are, which are shown, and where a click leads.
import type { AttemptRow, ChangeRow, IssueRow, Stop } from "./api";
import { hardware_marks, type HardwareRow } from "./hardware";
import { then_link } from "./past";
import { go, place, set_query } from "./place";

export type MarkKind = "sign" | "alarm" | "stop" | "checkpoint" | "restart" | "capture" | "setting" | "hardware" | "replay";
// `to`: the page that says more. `label`: written beside the line. `attempt`, `when`: of which and at which millisecond it was raised.
export interface Mark { x: number; kind: MarkKind; text: string; to?: string; label?: string; attempt?: number; when?: number }

export const MARK_SIGNS: Record<MarkKind, string> = { sign: "◇", alarm: "■", stop: "▼", checkpoint: "◆", restart: "⟲", capture: "○", setting: "✎", hardware: "⊗", replay: "△" };
// Kinds by the name that a person switches.
const GROUPS: Record<MarkKind, string> = { sign: "issues", alarm: "issues", stop: "stops", checkpoint: "checkpoints", restart: "restarts", capture: "captures", setting: "settings", hardware: "hardware", replay: "replays" };
export const GROUP_NAMES = [...new Set(Object.values(GROUPS))];
export const group_of = (mark: Mark) => GROUPS[mark.kind];

export function mark_colours(): Record<MarkKind, string> {
  const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dim = css("--dim");
  return { sign: css("--text"), alarm: css("--bad"), stop: css("--accent"), checkpoint: css("--good"), restart: dim, capture: dim, setting: dim, hardware: css("--bad"), replay: css("--text") };
}

// The address: `marks` names the kinds that are shown, "none" shows none, without it all are.
const asked = () => place.value.query.get("marks");
export const is_shown = (group: string) => { const text = asked(); return text === null || text.split(",").includes(group); };
export const shown_marks = (marks: Mark[]) => marks.filter((one) => is_shown(group_of(one)));
export function turn_marks(group: string): void {
  const now = GROUP_NAMES.filter((one) => is_shown(one) !== (one === group));
  set_query("marks", now.length === GROUP_NAMES.length ? "" : now.join(",") || "none");
}
export const turn_all_marks = () => set_query("marks", asked() === null ? "none" : "");

const issue_page = (one: IssueRow) => `/issues/${encodeURIComponent(one.key)}/${one.episode}`;

export interface Happened { uid: string; issues: IssueRow[]; stop: Stop | null; changes: ChangeRow[]; attempts?: AttemptRow[]; hardware?: HardwareRow[] }
// The alarm of each issue, the stop and its checkpoint, what was captured and set, what GPUs suffered: of the steps of training.
export function marks_of({ uid, issues, stop, changes, hardware = [] }: Happened): Mark[] {
  const out: Mark[] = [];
  const signed = new Set<number>();
  const history = `/runs/${uid}/history`;
  const steps = issues.filter((one) => one.step !== null && one.mode !== "eval" && one.mode !== "predict");
  for (const one of [...steps].sort((a, b) => a.step! - b.step! || (a.first_sign ? -1 : 1))) {
    if (signed.has(one.step!)) continue;  // many at one step are one place
    signed.add(one.step!);
    const sign = one.severity === "warning" || one.severity === "info";
    out.push({ x: one.step!, kind: sign ? "sign" : "alarm", text: `step ${one.step}: ${one.first_sign ? "first sign, " : ""}${one.summary}`, to: issue_page(one), attempt: one.attempt, when: Date.parse(one.starts_at) });
  }
  if (stop?.step != null) out.push({ x: stop.step, kind: "stop", text: `step ${stop.step}: run ${stop.state.replaceAll("_", " ")}`, to: history });
  const saved = stop?.checkpoint;
  if (saved) {
    const step = saved.step ?? stop?.step;
    if (step != null) out.push({ x: step, kind: "checkpoint", text: `step ${step}: checkpoint ${saved.path}`, to: history });
  }
  for (const one of changes)
    out.push({ x: one.step, kind: one.kind === "setting" ? "setting" : "capture", text: `step ${one.step}: ${one.text}${one.by ? `, asked by ${one.by}` : ""}`, to: history });
  return [...out, ...hardware_marks(hardware, uid)];
}

const NEAR = 14;  // CSS pixels from the middle of a sign
// Signs of one picture, as they were drawn last, in CSS pixels of `box`: a click leads on, the pointer gets the words.
export class MarkPlaces {
  private places: { at: number; mark: Mark }[] = [];
  // `high`: signs lie in so many pixels at the top.
  constructor(box: HTMLElement, private readonly high: number) {
    const under = (event: MouseEvent) => {
      const bounds = box.getBoundingClientRect();
      return event.clientY - bounds.top > this.high ? null : this.near(event.clientX - bounds.left);
    };
    box.addEventListener("click", (event) => { const to = under(event)?.to; if (to) go(then_link(to)); });
    box.addEventListener("pointermove", (event) => {
      const mark = under(event);
      box.title = mark?.text ?? "";
      box.style.cursor = mark?.to ? "pointer" : "";
    });
  }
  put(places: { at: number; mark: Mark }[]): void { this.places = places; }
  private near(x: number): Mark | null {
    const all = this.places.map((one) => ({ ...one, apart: Math.abs(one.at - x) })).filter((one) => one.apart <= NEAR);
    return all.sort((a, b) => a.apart - b.apart)[0]?.mark ?? null;
  }
}
