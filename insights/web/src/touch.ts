// Fingers on a chart: one reads, two zoom, a double tap shows all.
import type uPlot from "uplot";

const TWICE = 300;  // ms between two taps
const STILL = 10;   // CSS pixels that a finger may move in a tap
const CLOSE = 10;   // CSS pixels: two fingers do not come nearer

interface Pinch { apart: number; min: number; max: number; at: number }  // `at`: the x between the fingers, which stays there

export function follow_fingers(plot: uPlot, range: (from: number, to: number) => void, whole: () => void): void {
  const over = plot.over;
  let tapped = -TWICE;
  let begun: { x: number; time: number } | null = null;  // one finger, that has not moved
  let pinch: Pinch | null = null;
  const places = (event: TouchEvent) => [...event.touches].map((one) => one.clientX - over.getBoundingClientRect().left);
  over.style.touchAction = "pan-y";
  over.addEventListener("dblclick", whole);
  over.addEventListener("touchstart", (event) => {
    const at = places(event);
    const { min, max } = plot.scales.x!;
    begun = at.length === 1 ? { x: at[0]!, time: event.timeStamp } : null;
    if (at.length === 2 && min != null && max != null)
      pinch = { apart: Math.max(CLOSE, Math.abs(at[0]! - at[1]!)), min, max, at: plot.posToVal((at[0]! + at[1]!) / 2, "x") };
    if (at.length === 1) plot.setCursor({ left: at[0]!, top: 10 });
  }, { passive: true });
  over.addEventListener("touchmove", (event) => {
    const at = places(event);
    if (begun && Math.abs(at[0]! - begun.x) > STILL) begun = null;
    if (at.length === 1 && !pinch) plot.setCursor({ left: at[0]!, top: 10 });
    if (at.length !== 2 || !pinch) return;
    const by = pinch.apart / Math.max(CLOSE, Math.abs(at[0]! - at[1]!));
    plot.setScale("x", { min: Math.max(0, pinch.at - (pinch.at - pinch.min) * by), max: pinch.at + (pinch.max - pinch.at) * by });
  }, { passive: true });
  over.addEventListener("touchend", (event) => {
    if (pinch && event.touches.length === 0) {
      pinch = null;
      const { min, max } = plot.scales.x!;
      if (min != null && max != null) range(Math.floor(min), Math.ceil(max) + 1);
      return;
    }
    if (!begun || event.timeStamp - begun.time > TWICE) return;
    if (event.timeStamp - tapped < TWICE) { whole(); tapped = -TWICE; } else tapped = event.timeStamp;
  }, { passive: true });
}
