// The keys of every heat map: arrows read cells, Enter chooses.
import type { HeatCanvas } from "./heat";

export function heat_press(event: KeyboardEvent, one: HeatCanvas | null): void {
  const acts: Record<string, () => void> = { ArrowLeft: () => one?.step(0, -1), ArrowRight: () => one?.step(0, 1), ArrowUp: () => one?.step(-1, 0),
    ArrowDown: () => one?.step(1, 0), PageUp: () => one?.step(-20, 0), PageDown: () => one?.step(20, 0), Home: () => one?.step(0, -1e9),
    End: () => one?.step(0, 1e9), Enter: () => one?.choose() };
  if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  acts[event.key]!();
}

// The figure that has the pointer or the keys speaks; those that follow its cursor do not.
export const speaks = (box: HTMLElement | null) => (box !== null && (document.activeElement === box || box.matches(":hover")) ? "polite" : "off");
