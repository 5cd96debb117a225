// What each rank's time went into, which rank is late, and what the run would be without it.
import { ask, Refused, type RunPage } from "./api";
import { ByRankPanel } from "./by_rank";
import { useAsked } from "./curves";
import { LateFigure } from "./late";
import { Asked } from "./parts";
import { phase_colour, seconds_words, share_words } from "./phase_colours";
import { place, set_query } from "./place";
import { Head } from "./run_head";
import { useSlow } from "./slow";
import { turn_of } from "./stream";
import { WideTable } from "./wide_table";

export interface Rank {
  rank: number; worker: string; steps: number; seconds: number; compute: number; communication: number; data_wait: number; other: number; idle: number;
  overlap: number | null; lateness: number | null; most_late: number; last_of: number; without: number | null; late: (number | null)[];
}
interface Ranks { from: number; to: number; common: number; spans: boolean; items: Rank[] }
const PARTS: ["compute" | "communication" | "data_wait" | "other" | "idle", string][] =
  [["compute", "compute"], ["communication", "communication"], ["data_wait", "data wait"], ["other", "other phases"], ["idle", "idle"]];
const LASTS = [30, 100, 300, 1000];
const MOST_ROWS = 64;

function sentence(answer: Ranks): string {
  const late = [...answer.items].filter((one) => one.lateness !== null).sort((a, b) => b.lateness! - a.lateness!);
  const dear = [...answer.items].filter((one) => one.without !== null).sort((a, b) => b.without! - a.without!);
  const steps = `${answer.items.length} ${answer.items.length === 1 ? "rank" : "ranks"}, steps ${answer.from} to ${answer.to - 1}`;
  if (answer.items.length < 2) return `${steps}. One rank is never late.`;
  if (answer.common === 0) return `${steps}. No step was ended by all ranks.`;
  return `${steps}. Latest: ${late.slice(0, 5).filter((one) => one.lateness! > 0).map((one) => `rank ${one.rank}, ${seconds_words(one.lateness!)} behind the first on average`).join("; ") || "none"}.` +
    (dear[0] && dear[0].without! > 0 ? ` Without rank ${dear[0].rank} the steps would be ${share_words(dear[0].without!)} shorter.` : "");
}

function RankRow({ one }: { one: Rank }) {
  const whole = Math.max(1e-12, one.seconds);
  return (
    <tr data-rank={one.rank}><th scope="row">{one.rank}<span class="dim"> {one.worker}</span></th>
      <td><span class="bar-of" role="img" aria-label={PARTS.map(([part, word]) => `${word} ${share_words(one[part] / whole)}`).join(", ")}>{PARTS.map(([part]) => (
        <i key={part} style={{ flex: `0 0 ${one[part] / whole * 100}%`, background: phase_colour(part) }} />))}</span></td>
      {PARTS.map(([part]) => <td key={part} data-part={part}>{share_words(one[part] / whole)}</td>)}
      <td data-part="lateness">{one.lateness === null ? "–" : seconds_words(one.lateness)}</td><td>{one.last_of}</td>
      <td>{one.overlap === null ? "–" : share_words(one.overlap)}</td><td data-part="without">{one.without === null ? "–" : `−${share_words(one.without)}`}</td></tr>
  );
}

function Panels({ uid }: { uid: string }) {
  const turn = useSlow(turn_of(uid));
  const last = LASTS.find((one) => String(one) === place.value.query.get("last")) ?? 100;
  const sort = place.value.query.get("sort") ?? "late";
  const { answer, error } = useAsked<Ranks>(`/runs/${encodeURIComponent(uid)}/ranks?last=${last}`, turn);
  if (error instanceof Refused && error.status === 401) return null;
  const all = [...(answer?.items ?? [])].sort((a, b) => (sort === "rank" ? a.rank - b.rank : sort === "idle" ? b.idle / (b.seconds || 1) - a.idle / (a.seconds || 1) : (b.lateness ?? 0) - (a.lateness ?? 0) || a.rank - b.rank));
  return <>
    <section class="panel" id="late"><h2>Lateness of ranks, step by step</h2>
      {error && <p class="fault" role="alert">{error.message}</p>}
      <p class="tools"><label>Steps <select value={String(last)} onChange={(event) => set_query("last", event.currentTarget.value)}>{LASTS.map((one) => <option key={one} value={String(one)}>the last {one}</option>)}</select></label></p>
      {answer && <p id="rank-sentence">{sentence(answer)}</p>}
      {answer && answer.items.length === 0 && <p class="dim">No rank has ended a step of training yet.</p>}
      {answer && answer.items.length > 1 && answer.common > 0 && <LateFigure ranks={answer.items} from={answer.from} />}
      <p class="dim">A rank is as late as it ends a step behind the first one. Clocks of different nodes may differ by some milliseconds.</p>
    </section>
    {answer && answer.items.length > 0 && <section class="panel" id="rank-times"><h2>Where the time of each rank goes</h2>
      <p class="tools"><label>Order <select value={sort} onChange={(event) => set_query("sort", event.currentTarget.value === "late" ? "" : event.currentTarget.value)}><option value="late">latest first</option><option value="idle">most idle first</option><option value="rank">by rank</option></select></label>
        <span class="legend">{PARTS.map(([part, word]) => <span key={part}><i style={{ background: phase_colour(part) }} /> {word}</span>)}</span></p>
      {!answer.spans && <p class="dim">No spans: nobody knows what the time of a step went into. A loop of your own marks phases by <code>with hook.phase("forward"):</code></p>}
      <WideTable label="Times of ranks" kind="grid" first_too><thead><tr><th scope="col">rank</th><th scope="col">time of its steps</th>{PARTS.map(([part, word]) => <th key={part} scope="col">{word}</th>)}<th scope="col">late, on average</th><th scope="col">last of all</th><th scope="col">overlap</th><th scope="col">step time without it</th></tr></thead>
        <tbody>{all.slice(0, MOST_ROWS).map((one) => <RankRow key={one.rank} one={one} />)}</tbody></WideTable>
      {all.length > MOST_ROWS && <p class="dim">{all.length - MOST_ROWS} more ranks: choose another order.</p>}
      <p class="dim">Compute is what kernels take; where no kernels are traced, the phases forward, backward and optimizer. Overlap is the share of communication that runs beside kernels. Without a rank: the longest own time (a step without communication) of the others, against that of all.</p>
    </section>}
    <ByRankPanel uid={uid} turn={turn} />
  </>;
}

export function RanksScreen({ uid }: { uid: string }) {
  return (
    <Asked<RunPage> name={`/runs/${uid}`} load={() => ask(`/runs/${encodeURIComponent(uid)}`)}>{(answer) => {
      document.title = `${answer.run.job ?? answer.run.uid}: ranks · Tocsin`;
      return <><Head run={answer.run} at="ranks" /><Panels uid={answer.run.uid} /></>;
    }}</Asked>
  );
}
