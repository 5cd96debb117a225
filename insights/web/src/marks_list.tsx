// The marks of a screen in words, each with a link to what it is of, and a switch for each kind.
import { useRef } from "preact/hooks";
import { Link } from "./parts";
import { group_of, GROUP_NAMES, is_shown, MARK_SIGNS, shown_marks, turn_marks, type Mark } from "./marks";

const MOST_LINES = 12;

// Those that are shown, as the same value as long as they are the same: who draws them draws once.
export function useMarks(marks: Mark[]): Mark[] {
  const shown = shown_marks(marks);
  const text = JSON.stringify(shown);
  const kept = useRef({ text, shown });
  if (kept.current.text !== text) kept.current = { text, shown };
  return kept.current.shown;
}

function Lines({ marks }: { marks: Mark[] }) {
  return <ul class="marks">{marks.map((mark, at) => (
    <li key={at}><b class={mark.kind} aria-hidden="true">{MARK_SIGNS[mark.kind]}</b> {mark.to ? <Link to={mark.to}>{mark.text}</Link> : mark.text}</li>))}</ul>;
}

export function Marks({ marks }: { marks: Mark[] }) {
  if (marks.length === 0) return null;
  const kinds = GROUP_NAMES.map((group) => ({ group, mine: marks.filter((one) => group_of(one) === group) })).filter((one) => one.mine.length > 0);
  const shown = shown_marks(marks);
  return <>
    <p class="tools marks-of" role="group" aria-label="marks on charts"><span class="dim">Marks</span>{kinds.map(({ group, mine }) => (
      <button key={group} type="button" aria-pressed={is_shown(group)} onClick={() => turn_marks(group)}>{MARK_SIGNS[mine[mine.length - 1]!.kind]} {group} {mine.length}</button>))}</p>
    <Lines marks={shown.slice(0, MOST_LINES)} />
    {shown.length > MOST_LINES && <details><summary>{shown.length - MOST_LINES} more</summary><Lines marks={shown.slice(MOST_LINES)} /></details>}
  </>;
}
