// A list of any length: only rows near the window are in the page, and they are asked for as they come near.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const OVER = 8;  // rows kept above and below the window
const HEADING = 44;
const TALL = { wide: 64, narrow: 204 };  // CSS pixels of a row, at 16 px a letter

export interface Group { name: string; count: number }
interface Window { first: number; last: number }  // rows, [first, last)

const unit = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
const row_height = () => unit() * (matchMedia("(max-width: 700px)").matches ? TALL.narrow : TALL.wide);

// Where the row lies, in CSS pixels from the top of the list.
function place_of(groups: Group[], at: number, high: number): number {
  let before = 0;
  let top = 0;
  for (const one of groups) {
    if (one.count === 0) continue;
    top += HEADING;
    if (at < before + one.count) return top + (at - before) * high;
    before += one.count;
    top += one.count * high;
  }
  return top;
}
function row_at(groups: Group[], y: number, high: number): number {
  let before = 0;
  let top = 0;
  for (const one of groups) {
    if (one.count === 0) continue;
    top += HEADING;
    if (y < top + one.count * high) return before + Math.max(0, Math.floor((y - top) / high));
    before += one.count;
    top += one.count * high;
  }
  return before;
}

// `look` is told which rows are wanted; `row` draws one, in cells.
export function LongList({ label, groups, look, row }:
  { label: string; groups: Group[]; look: (first: number, last: number) => void; row: (at: number) => ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const wanted = useRef<number | null>(null);
  const [seen, see] = useState<Window>({ first: 0, last: 30 });
  const [active, set_active] = useState<number | null>(null);
  const [high, set_high] = useState(row_height());
  const count = groups.reduce((sum, one) => sum + one.count, 0);
  useLayoutEffect(() => {
    let due = 0;
    const measure = () => {
      due = 0;
      const tall = row_height();
      const top = -box.current!.getBoundingClientRect().top;
      const first = Math.max(0, row_at(groups, top, tall) - OVER);
      const last = Math.min(count, row_at(groups, top + innerHeight, tall) + 1 + OVER);
      set_high(tall);
      see((now) => (now.first === first && now.last === last ? now : { first, last }));
    };
    const soon = () => { if (!due) due = requestAnimationFrame(measure); };
    measure();
    window.addEventListener("scroll", soon, { passive: true });
    window.addEventListener("resize", soon);
    return () => { cancelAnimationFrame(due); window.removeEventListener("scroll", soon); window.removeEventListener("resize", soon); };
  }, [count, groups.map((one) => one.count).join()]);
  useEffect(() => look(seen.first, seen.last), [seen]);
  useEffect(() => {
    if (wanted.current === null) return;
    const link = box.current!.querySelector<HTMLElement>(`[data-at="${wanted.current}"] a`);
    if (link) { wanted.current = null; link.focus({ preventScroll: true }); }
  });
  const go_to = (at: number) => {
    wanted.current = Math.min(count - 1, Math.max(0, at));
    set_active(wanted.current);
    const top = box.current!.getBoundingClientRect().top + place_of(groups, wanted.current, high);
    if (top < HEADING || top + high > innerHeight) window.scrollBy(0, top - innerHeight / 2);
  };
  const press = (event: KeyboardEvent) => {
    const here = (event.target as HTMLElement).closest<HTMLElement>("[data-at]");
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = Number(here.dataset.at);
    const page = Math.max(1, Math.floor(innerHeight / high) - 1);
    const to: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 };
    if (to[event.key] === undefined) return;
    event.preventDefault();
    go_to(to[event.key]!);
  };
  const rows = Array.from({ length: Math.max(0, seen.last - seen.first) }, (_, at) => seen.first + at);
  if (active !== null && active < count && !rows.includes(active)) rows.push(active);  // who has the focus keeps it
  let line = 0;
  let before = 0;
  const starts = groups.filter((one) => one.count > 0).map((one) => {
    const out = { ...one, line: line + 1, first: before, top: place_of(groups, before, high) - HEADING };
    line += 1 + one.count;
    before += one.count;
    return out;
  });
  const line_of = (at: number) => at + 1 + starts.filter((one) => one.first <= at).length;
  return (
    <div role="grid" aria-label={label} aria-rowcount={line} class="long" ref={box} onKeyDown={press} style={{ height: `${place_of(groups, count, high)}px` }}
      onFocusIn={(event) => { const here = (event.target as HTMLElement).closest<HTMLElement>("[data-at]"); if (here) set_active(Number(here.dataset.at)); }}>
      {starts.map((one) => <div role="row" key={one.name} aria-rowindex={one.line} class="heading" style={{ top: `${one.top}px` }}><div role="gridcell"><h2>{one.name} <span class="dim">{one.count}</span></h2></div></div>)}
      {rows.map((at) => <div role="row" key={at} aria-rowindex={line_of(at)} data-at={at} class="run" style={{ top: `${place_of(groups, at, high)}px`, height: `${high}px` }}>{row(at)}</div>)}
    </div>
  );
}
