// What happened to a run, by the clock: marks on charts whose x is time.
import { restart_times } from "./attempts";
import { clock_words } from "./clock";
import { hardware_times } from "./hardware";
import type { Happened, Mark, MarkKind } from "./marks";

const NEAR = 1000;  // ms: what is of one kind within them is one mark

// `from`, `to`: what is shown, in milliseconds.
export function time_marks({ uid, issues, stop, changes, attempts = [], hardware = [] }: Happened, from: number, to: number): Mark[] {
  const out: Mark[] = [];
  const history = `/runs/${uid}/history`;
  const add = (at: string | null, kind: MarkKind, said: string, to_page: string) => {
    const x = at === null ? NaN : Date.parse(at);
    if (!(x >= from && x <= to) || out.some((one) => one.kind === kind && Math.abs(one.x - x) < NEAR)) return;
    out.push({ x, kind, text: `${clock_words(x)}: ${said}`, to: to_page });
  };
  for (const one of [...issues].sort((a, b) => Date.parse(a.starts_at) - Date.parse(b.starts_at) || (a.first_sign ? -1 : 1))) {
    const sign = one.severity === "warning" || one.severity === "info";
    add(one.starts_at, sign ? "sign" : "alarm", `${one.first_sign ? "first sign, " : ""}${one.summary}`, `/issues/${encodeURIComponent(one.key)}/${one.episode}`);
  }
  if (stop) add(stop.requested_at, "stop", `stop asked, ${stop.state.replaceAll("_", " ")}${stop.step === null ? "" : ` at step ${stop.step}`}`, history);
  for (const one of changes) add(one.time, one.kind === "setting" ? "setting" : "capture", `${one.text} from step ${one.step} on${one.by ? `, asked by ${one.by}` : ""}`, history);
  out.push(...restart_times(attempts, uid).filter((one) => one.x >= from && one.x <= to));
  out.push(...hardware_times(hardware, uid, from, to));
  return out.sort((a, b) => a.x - b.x);
}
