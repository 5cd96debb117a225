// Keys of charts: of the one that has the focus, else of the first one in the window.
import type { Chart } from "./chart";
import type { Mark } from "./marks";
import { turn_axis } from "./step_axis_choice";

interface Pressed { chart: Chart | null; at: number | null; marks: Mark[]; whole: () => void }

const bare = (event: KeyboardEvent) => !event.ctrlKey && !event.metaKey && !event.altKey;

export function press_chart(event: KeyboardEvent, { chart, at, marks, whole }: Pressed): void {
  if (!chart || !bare(event)) return;
  const far = event.shiftKey ? 10 : 1;
  const places = marks.map((mark) => mark.x).sort((a, b) => a - b);
  const put = (x: number | undefined) => { if (x !== undefined) chart.put(x); };
  const acts: Record<string, () => void> = {
    ArrowLeft: () => chart.step(-far), ArrowRight: () => chart.step(far), PageUp: () => chart.step(-20), PageDown: () => chart.step(20),
    Home: () => chart.step(-1e9), End: () => chart.step(1e9), "+": () => chart.zoom(0.5), "-": () => chart.zoom(2), "0": whole,
    w: () => chart.zoom(0.5), s: () => chart.zoom(2), a: () => chart.pan(-0.5), d: () => chart.pan(0.5),
    "[": () => put(places.filter((x) => at === null || x < at).pop()), "]": () => put(places.find((x) => at === null || x > at)),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]!();
}

const plots = () => [...document.querySelectorAll<HTMLElement>("main .chart .plot")];
function meant(): HTMLElement | undefined {
  const focused = document.activeElement?.closest<HTMLElement>(".chart .plot");
  return focused ?? plots().find((one) => { const { top, bottom } = one.getBoundingClientRect(); return bottom > 0 && top < innerHeight; });
}

// The same keys where no chart has the focus.
const hand_on = (key: string) => () => { meant()?.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true })); };
const press = (css: string, words: string) => () =>
  [...document.querySelectorAll<HTMLElement>(css)].find((one) => one.textContent?.startsWith(words))?.click();

export const CHART_ACTS: Record<string, () => void> = {
  ...Object.fromEntries(["w", "s", "a", "d", "0", "[", "]"].map((key) => [key, hand_on(key)])),
  x: turn_axis,
  l: press("main .tools button", "Logarithmic"),
  e: press("main .tools a.csv", "CSV"),
  v: () => { meant()?.closest(".chart")?.querySelector<HTMLElement>("details > summary")?.click(); },
};
