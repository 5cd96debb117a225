// Each number of a headline, a table or a detail copies on a click, with its unit: one listener for the whole page.
import { useEffect, useState } from "preact/hooks";
import { numbers_in, type Found } from "./numbers";

const BLOCKS = "p, li, td, th, dd, h1, figcaption, caption, [role=gridcell]";
const CELLS = "td, dd";
// What a click has another meaning for.
const OWN_CLICK = "a, button, input, select, textarea, label, summary, dialog, code, pre, canvas, time, [role=button], [contenteditable], .plot, .cells";
const DRAGGED = 4;  // px

interface Place { block: HTMLElement; range: Range; text: string }

function range_of(block: Element, { from, to }: Found): Range {
  const range = document.createRange();
  const nodes = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  let before = 0;
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    const after = before + node.nodeValue!.length;
    if (from >= before && from < after) range.setStart(node, from - before);
    if (to > before && to <= after) { range.setEnd(node, to - before); break; }
    before = after;
  }
  return range;
}

const covers = (range: Range, x: number, y: number) =>
  [...range.getClientRects()].some((box) => x >= box.left - 1 && x <= box.right + 1 && y >= box.top && y <= box.bottom);

// The number under the pointer; a cell with one number is that number.
function number_at({ target, clientX, clientY }: MouseEvent): Place | null {
  const at = target as Element;
  if (!at.closest?.("main") || at.closest(OWN_CLICK)) return null;
  const block = at.closest<HTMLElement>(BLOCKS);
  const all = block ? numbers_in(block.textContent ?? "") : [];
  const places = all.map((one) => ({ block: block!, range: range_of(block!, one), text: one.text }));
  const found = places.find(({ range }) => covers(range, clientX, clientY)) ?? (places.length === 1 && block!.matches(CELLS) ? places[0]! : null);
  if (!found) return null;
  const unit = block!.dataset.unit;
  return unit && /\d$/.test(found.text) ? { ...found, text: `${found.text} ${unit}` } : found;
}

// Without a secure context there is no clipboard to write to, but what is chosen can be copied.
export async function put_on_clipboard(text: string): Promise<boolean> {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* the older way */ }
  const focused = document.activeElement as HTMLElement | null;
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "said";
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  focused?.focus({ preventScroll: true });
  return done;
}

// Shows what a click would copy, while the pointer is on it.
let hinted: HTMLElement | null = null;
let titled = false;
function hint(place: Place | null): void {
  if (hinted && hinted !== place?.block) {
    hinted.classList.remove("copies");
    if (titled) hinted.removeAttribute("title");
    titled = false;
  }
  hinted = place?.block ?? null;
  if ("highlights" in CSS) { if (place) CSS.highlights.set("number", new Highlight(place.range)); else CSS.highlights.delete("number"); }
  if (!place) return;
  place.block.classList.add("copies");
  titled ||= !place.block.title;
  if (titled) place.block.title = `Click to copy ${place.text}`;
}

export function Copies() {
  const [said, say] = useState({ words: "", turn: 0 });
  useEffect(() => {
    const leave = new AbortController();
    let down = [0, 0];
    const moved = (event: PointerEvent) => { if (event.pointerType === "mouse") hint(event.buttons ? null : number_at(event)); };
    const pressed = (event: PointerEvent) => { down = [event.clientX, event.clientY]; };
    const clicked = async (event: MouseEvent) => {
      const dragged = Math.hypot(event.clientX - down[0]!, event.clientY - down[1]!) > DRAGGED || !(getSelection()?.isCollapsed ?? true);
      if (event.defaultPrevented || event.button !== 0 || event.detail > 1 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || dragged) return;
      const found = number_at(event);
      if (!found) return;
      const done = await put_on_clipboard(found.text);
      say(({ turn }) => ({ words: done ? `copied ${found.text}` : "not copied: this browser does not let the page write to the clipboard", turn: turn + 1 }));
    };
    const { signal } = leave;
    document.addEventListener("pointermove", moved, { signal, passive: true });
    document.addEventListener("pointerdown", pressed, { signal, passive: true });
    document.addEventListener("click", (event) => void clicked(event), { signal });
    return () => leave.abort();
  }, []);
  return <div role="status" class="copied">{said.words && <span key={said.turn}>{said.words}</span>}</div>;
}
