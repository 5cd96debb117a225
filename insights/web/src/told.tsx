// Who was told, and what was done.
import type { Delivery, Stop } from "./api";
import { Moment, Panel } from "./parts";
import { place } from "./place";
import { AsItWas } from "./then";

// What commands a run is what was done, and numbers are no message.
const TELLS_NOBODY = new Set(["stop_training", "profile_training", "raise_capture", "adjust", "publish_metric"]);

// Of each message its end; an attempt that is still to be followed by another stays until then.
function newest(deliveries: Delivery[]): Delivery[] {
  const by_message = new Map<string, Delivery>();
  for (const one of deliveries) if (!TELLS_NOBODY.has(one.type)) by_message.set(`${one.integration} ${one.reason}`, one);
  return [...by_message.values()];
}

// What a message was about, where it is not the first about the incident.
const ABOUT: Record<string, string> = {
  new_issues: "new issues", all_resolved: "that all is over", some_resolved: "that some is over", severity_raised: "a higher severity",
  repeat: "that it goes on", escalation: "as an escalation",
};

const ARRIVED = new Set(["delivered", "delivered_via_digest"]);

export function Told({ deliveries }: { deliveries: Delivery[] }) {
  const shown = newest(deliveries);
  return (
    <Panel title="Who was told" id="told">
      {shown.length === 0 ? <p>Nobody.</p> :
        <ul class="lines">{shown.map((one) => (
          <li key={one.id}>
            <span class={ARRIVED.has(one.state) ? "good" : "bad"}>{ARRIVED.has(one.state) ? "✓" : "✗"}</span>{" "}
            <b>{one.receiver}</b> by {one.type}: {one.state.replaceAll("_", " ")}{ABOUT[one.reason] && `, ${ABOUT[one.reason]}`}
            {one.code && <span class="dim"> {one.code} ·</span>}{" "}
            <span class="dim">{one.latency_ms} ms · <Moment at={one.time} /></span>{" "}<AsItWas to={place.value.path} at={one.time}>as it was then</AsItWas>
            {!ARRIVED.has(one.state) && one.detail && <div class="dim">{one.detail}</div>}
          </li>))}</ul>}
    </Panel>
  );
}

const bytes = (count: number) =>
  count < 1e6 ? `${Math.round(count / 1e3)}\u00a0kB` : count < 1e9 ? `${(count / 1e6).toFixed(1)}\u00a0MB` : `${(count / 1e9).toFixed(1)}\u00a0GB`;

export function Done({ stop }: { stop: Stop | null }) {
  if (!stop) return <Panel title="What was done" id="done"><p>Nothing: the run was not asked to stop.</p></Panel>;
  const saved = stop.checkpoint;
  return (
    <Panel title="What was done" id="done">
      <p><b>Stop: {stop.state.replaceAll("_", " ")}</b>{stop.step !== null && ` at step ${stop.step}`}
        {stop.exit_code !== null && `, exit code ${stop.exit_code}`}</p>
      <p>Asked by {stop.rule ? `the rule ${stop.rule}` : stop.requested_by ?? "a person"} <span class="dim"><Moment at={stop.requested_at} /></span></p>
      {stop.reason && <p>Because {stop.reason}</p>}
      {stop.ranks.asked > 0 && <p>{stop.ranks.stopped} of {stop.ranks.asked} {stop.ranks.asked === 1 ? "rank" : "ranks"} stopped{stop.ranks.refused > 0 && `, ${stop.ranks.refused} refused`}</p>}
      {saved ? <p>Checkpoint{saved.step !== null && ` of step ${saved.step}`}: <code>{saved.path}</code>
        {saved.host && <> on <b>{saved.host}</b></>}{saved.bytes > 0 && <span class="dim"> {bytes(saved.bytes)}</span>}</p>
        : <p>No checkpoint{stop.checkpoint_failure ? `: ${stop.checkpoint_failure}` : " was saved."}</p>}
    </Panel>
  );
}
