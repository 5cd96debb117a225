// Keys: who looks at this all night does not use a mouse. `?` shows them; they can be switched off.
import { useEffect, useRef, useState } from "preact/hooks";
import { CHART_ACTS } from "./chart_keys";
import { put_on_clipboard } from "./copies";
import { turn_theme, turn_zone } from "./look";
import { turn_all_marks } from "./marks";
import { then_link } from "./past";
import { press_space } from "./paused";
import { go } from "./place";

const PLACES: Record<string, [string, string]> = { r: ["/", "runs"], i: ["/issues", "issues"], f: ["/fleet", "fleet"], s: ["/system", "system"] };
const TABS: Record<string, [string, string]> = { o: ["", "overview"], t: ["/tensors", "tensors"], n: ["/nodes", "nodes"], l: ["/timeline", "time line"], k: ["/ranks", "ranks"], u: ["/rules", "rules"], h: ["/history", "history"] };
const SAID: [string, string][] = [
  ["/", "filter, or find a run"], ["j k", "next, previous line"], ["Enter", "open it"],
  ...Object.entries(PLACES).map(([key, [, name]]): [string, string] => [`g ${key}`, name]),
  ...Object.entries(TABS).map(([key, [, name]]): [string, string] => [`g ${key}`, `${name} of this run`]),
  ["A", "acknowledge this issue"], ["S", "silence this issue"], ["c", "copy the first command"], ["y", "copy the address"],
  ["w s", "zoom a chart in, out"], ["a d", "earlier, later"], ["0", "all steps"], ["[ ]", "previous, next mark"],
  ["l", "logarithmic"], ["x", "curves by step, time or epoch"], ["v", "table of a chart"], ["e", "curves as CSV"], ["m", "marks on charts on or off"], ["t", "light or dark"], ["z", "UTC or your own time"], ["Space", "pause, go on"], ["?", "these keys"],
];
const LINES = "main .run-head a, main .run-name a, main .lines a, main .history a, main .rule-row a";

// The run that the address names.
const run_here = () => /^\/runs\/([^/]+)/.exec(location.pathname)?.[1] ?? null;

function find(): void {
  const box = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (box) { box.focus(); box.select(); return; }
  go(then_link("/"));
  requestAnimationFrame(() => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus());
}

function move(by: number): void {
  const lines = [...document.querySelectorAll<HTMLElement>(LINES)];
  if (lines.length === 0) return;
  const now = lines.indexOf(document.activeElement as HTMLElement);
  const next = now < 0 ? (by > 0 ? 0 : lines.length - 1) : Math.min(lines.length - 1, Math.max(0, now + by));
  lines[next]!.focus();
}

const press = (words: string) => [...document.querySelectorAll<HTMLButtonElement>("#act button")].find((one) => one.textContent?.startsWith(words))?.click();

const ACTS: Record<string, () => void> = {
  "/": find, j: () => move(1), k: () => move(-1), t: turn_theme, z: turn_zone, m: turn_all_marks,
  A: () => press("Acknowledge"), S: () => press("Silence"), c: () => document.querySelector<HTMLButtonElement>(".command button")?.click(),
  y: () => { void put_on_clipboard(location.href); }, ...CHART_ACTS,
};

const off = () => { try { return localStorage.getItem("tocsin.keys") === "off"; } catch { return false; } };

export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [silent, set_silent] = useState(off());
  const [shown, show] = useState(false);
  useEffect(() => { if (shown) dialog.current?.showModal(); }, [shown]);
  useEffect(() => {
    let after_g = 0;
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) ) return;
      if (event.key === "?") { event.preventDefault(); show(true); return; }
      if (silent || shown) return;
      if (after_g && event.timeStamp - after_g < 1500) {
        after_g = 0;
        const run = run_here();
        const to = PLACES[event.key]?.[0] ?? (run && TABS[event.key] ? `/runs/${run}${TABS[event.key]![0]}` : null);
        if (to !== null) { event.preventDefault(); go(then_link(to)); }
        return;
      }
      if (event.key === "g") { after_g = event.timeStamp; return; }
      if (event.key === " ") { press_space(event); return; }
      const act = ACTS[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [silent, shown]);
  const turn = () => {
    try { localStorage.setItem("tocsin.keys", silent ? "on" : "off"); } catch { /* a private window */ }
    set_silent(!silent);
  };
  return (
    <>
      <button type="button" class="quiet" aria-label="keys" onClick={() => show(true)}>?</button>
      {shown && <dialog ref={dialog} aria-labelledby="keys-title" onClose={() => show(false)}>
        <h2 id="keys-title">Keys</h2>
        <dl class="keys-list">{SAID.map(([key, words]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{words}</dd></div>)}</dl>
        <p>A click on a number copies it with its unit.</p>
        <p>On a chart: arrows read values, with Shift ten at a time; + and − zoom. Without a chosen chart, these letters act on the first one in the window.</p>
        <p><label><input type="checkbox" checked={!silent} onChange={turn} /> Single letters are keys</label></p>
        <p><button type="button" onClick={() => dialog.current?.close()}>Close</button></p>
      </dialog>}
    </>
  );
}
