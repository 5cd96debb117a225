// A screen of the second file: nothing is shown until it is there, which takes no time worth telling.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

type Heavy = typeof import("./heavy");
const heavy = signal<Heavy | undefined>(undefined);
const failed = signal(false);
let asked = false;

function ask(): void {
  if (asked) return;
  asked = true;
  failed.value = false;
  import("./heavy").then((all) => { heavy.value = all; }, () => { asked = false; failed.value = true; });
}

export function Later({ show }: { show: (all: Heavy) => ComponentChildren }) {
  if (heavy.value) return <>{show(heavy.value)}</>;
  if (failed.value) return <p class="bad" role="alert">This screen could not be loaded. <button type="button" onClick={ask}>Retry</button></p>;
  ask();
  return <p class="dim" aria-busy="true" />;
}
