// A phase has one colour wherever it is drawn; what is no phase has one by its name.
const PHASES: Record<string, string> = { forward: "#0072b2", backward: "#e69f00", optimizer: "#009e73", data_wait: "#d55e00", communication: "#cc79a7",
  evaluation: "#56b4e9", checkpoint: "#8a6d3b", initialization: "#7a7f87", finalization: "#7a7f87", compute: "#0072b2", other: "#56b4e9", idle: "#b9bec5", "": "#b9bec5" };
const OTHERS = ["#3b6ea5", "#b5651d", "#4c8c5a", "#9b59a8", "#a63d40", "#2f7f86", "#a08a2f", "#6b6f9c"];

export function phase_colour(name: string): string {
  const known = PHASES[name];
  if (known) return known;
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return OTHERS[sum % OTHERS.length]!;
}

export const seconds_words = (seconds: number) => {
  const size = Math.abs(seconds);
  const said = (value: number, unit: string) => `${Number(value.toPrecision(3))} ${unit}`;
  if (size === 0) return "0 s";
  if (size < 1e-3) return said(seconds * 1e6, "µs");
  if (size < 1) return said(seconds * 1e3, "ms");
  if (size < 120) return said(seconds, "s");
  if (size < 7200) return `${Math.floor(size / 60)} min ${Math.round(size % 60)} s`;
  return `${Math.floor(size / 3600)} h ${Math.round(size % 3600 / 60)} min`;
};
export const share_words = (share: number) => `${(share * 100).toFixed(1)} %`;
