// Tables that stack their rows in a narrow window: each cell says its column there, so that nobody scrolls to the side.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

// Browsers forget what a table is once its rows are drawn as blocks; roles keep it for a screen reader.
const ROLES: [string, string][] = [["thead, tbody", "rowgroup"], ["tr", "row"], ["td", "cell"], ["thead th", "columnheader"], ["tbody th", "rowheader"]];
const shown_words = (cell: Element) => (cell.querySelector(".said") ? "" : cell.textContent ?? "");

function name_cells(table: HTMLTableElement, first_too: boolean): void {
  for (const [which, role] of ROLES) for (const one of table.querySelectorAll(which)) one.setAttribute("role", role);
  const names = [...table.querySelectorAll("thead th")].map(shown_words);
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, at) => {
      const name = cell.hasAttribute("colspan") || (cell.tagName === "TH" && !first_too) ? "" : names[at];
      if (name) cell.setAttribute("data-name", name); else cell.removeAttribute("data-name");
    });
  }
}

// `first_too`: what is first in a row needs its column's name too, because it is a number. `alone`: it scrolls by itself, so keys must reach it.
export function StackTable({ kind = "", first_too = false, alone = true, children }: { kind?: string; first_too?: boolean; alone?: boolean; children: ComponentChildren }) {
  const table = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => name_cells(table.current!, first_too));
  return <table ref={table} role="table" class={`stacks ${kind}`} tabIndex={alone ? 0 : undefined}>{children}</table>;
}

export function WideTable({ label, ...more }: { label: string; kind?: string; first_too?: boolean; children: ComponentChildren }) {
  return <div class="wide" tabIndex={0} role="region" aria-label={label}><StackTable {...more} alone={false} /></div>;
}
