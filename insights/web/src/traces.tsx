// Traces that the ranks of a run have sent: their size is told, and their bytes go past the page into a file.
import { useState } from "preact/hooks";
import { ask, Refused } from "./api";
import { useAsked } from "./curves";
import { Command, Moment } from "./parts";
import { useSlow } from "./slow";
import { turn_of } from "./stream";
import { amount } from "./system_data";
import { WideTable } from "./wide_table";

interface Trace {
  id: string; command_id: string; by: string | null; worker: string; rank: number; node: string | null; attempt: number;
  step: number; first_step: number | null; steps: number | null; bytes: number; sent_at: string;
}
interface Place { here: boolean; uri: string | null; why: string | null; node: string | null; bytes: number; command: string }
const MOST_TRACES = 64;

const steps_words = (one: Trace) => one.first_step === null || one.steps === null ? `up to ${one.step - 1}`
  : one.steps === 1 ? String(one.first_step) : `${one.first_step} to ${one.first_step + one.steps - 1}`;

// Of each command that several ranks have answered: the line that makes one trace of theirs.
function merges(uid: string, all: Trace[]): { steps: string; line: string }[] {
  const by_command = new Map<string, Trace[]>();
  for (const one of all) by_command.set(one.command_id, [...(by_command.get(one.command_id) ?? []), one]);
  return [...by_command.values()].filter((mine) => mine.length > 1).map((mine) => ({ steps: steps_words(mine[0]!),
    line: `python3 -m tocsin.trace ${uid} ${mine.map((one) => `${one.worker}@${one.step}`).join(" ")} --to all.json.gz` }));
}

function Row({ uid, one, several }: { uid: string; one: Trace; several: boolean }) {
  const path = `/runs/${encodeURIComponent(uid)}/traces/${encodeURIComponent(one.id)}`;
  const [told, tell] = useState<{ words: string; command?: string } | null>(null);
  const look = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    tell({ words: "The server looks for it." });
    ask<Place>(`${path}/place`).then((place) => {
      if (place.here) { tell(null); window.location.assign(`/api/v1${path}`); return; }
      tell({ words: `It lies in ${place.uri}${place.node ? `, written on ${place.node}` : ""}. This server cannot read it: ${place.why}.`, command: place.command });
    }, (why: Error) => tell({ words: why.message }));
  };
  return (
    <tr data-trace={one.id}><th scope="row">{steps_words(one)}</th>{several && <td>{one.attempt}</td>}<td>{one.rank} <span class="dim">{one.worker}{one.node && `, ${one.node}`}</span></td><td>{amount(one.bytes, "B")}</td>
      <td><Moment at={one.sent_at} />{one.by && <span class="dim"> asked by {one.by}</span>}</td>
      <td><a href={`/api/v1${path}`} download onClick={look} aria-label={`Download the trace of rank ${one.rank}, steps ${steps_words(one)}, ${amount(one.bytes, "B")}`}>Download</a>
        {told && <p role="status">{told.words}</p>}{told?.command && <Command says="Fetch it where that can be read" line={told.command} />}</td></tr>
  );
}

export function TracesPanel({ uid }: { uid: string }) {
  const turn = useSlow(turn_of(uid));
  const { answer, error } = useAsked<{ items: Trace[] }>(`/runs/${encodeURIComponent(uid)}/traces`, turn);
  if (error && !(error instanceof Refused && error.status === 401)) return <section class="panel" id="traces"><h2>Traces</h2><p class="fault" role="alert">{error.message}</p></section>;
  if (!answer || answer.items.length === 0) return null;
  const { items } = answer;
  const several = new Set(items.map((one) => one.attempt)).size > 1;
  return (
    <section class="panel" id="traces"><h2>Traces {items.length}</h2>
      <WideTable label="traces" first_too>
        <thead><tr><th scope="col">Steps</th>{several && <th scope="col">Attempt</th>}<th scope="col">Rank</th><th scope="col">Size</th><th scope="col">Sent</th><th scope="col"><span class="said">file</span></th></tr></thead>
        <tbody>{items.slice(0, MOST_TRACES).map((one) => <Row key={one.id} uid={uid} one={one} several={several} />)}</tbody></WideTable>
      {items.length > MOST_TRACES && <p class="dim">{items.length - MOST_TRACES} more are in <code>/api/v1/runs/{uid}/traces</code>.</p>}
      {merges(uid, items).slice(0, 4).map((one) => <Command key={one.line} says={`All ranks as one trace, steps ${one.steps}`} line={one.line} />)}
      <p class="dim">A file opens in ui.perfetto.dev or chrome://tracing. Raw tensors, and traces with them, are kept for some hours.</p>
    </section>
  );
}
