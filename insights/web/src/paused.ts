// A page that rests at a moment because a person wants to read: nothing is asked of its own accord and nothing moves, until it goes on.
import { computed, effect, signal } from "@preact/signals";
import { moment } from "./past";
import { place } from "./place";

// Since when, in milliseconds; null: the page follows what happens.
export const paused = signal<number | null>(null);
export const is_paused = () => paused.peek() !== null;
export const go_on = () => { paused.value = null; };

// Another screen is live again: what it shows would be newer than the pause.
const screen = computed(() => `${place.value.path} ${moment.value}`);
effect(() => { void screen.value; go_on(); });

const OWN_SPACE = "a, button, input, select, textarea, summary, label, dialog, [role=button], [contenteditable]";

// Space, unless what has the focus needs it. A page of the past does not move anyway.
export function press_space(event: KeyboardEvent): void {
  if (event.shiftKey || moment.peek() || (event.target as Element).closest?.(OWN_SPACE)) return;
  event.preventDefault();
  if (!event.repeat) paused.value = is_paused() ? null : Date.now();
}

const end_of_pause = () => new Promise<void>((done) => {
  const stop = paused.subscribe((since) => { if (since === null) { done(); queueMicrotask(() => stop()); } });
});

// An answer that comes in the pause to what was asked before it waits for its end; what a person asks for in the pause does not.
export async function after_pause<T>(answer: Promise<T>): Promise<T> {
  const moved = !is_paused();
  try { return await answer; } finally { if (moved && is_paused()) await end_of_pause(); }
}
