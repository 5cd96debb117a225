// Colours of lines.
import { is_dark } from "./look";

// Told apart with each kind of colour blindness (tests/e2e/test_page_files.py computes it).
const COLOURS = { light: ["#0334d4", "#c28402", "#006f4e", "#c436a0", "#32264e", "#745600", "#2f93f8", "#551003"],
  dark: ["#35c1ff", "#cdb006", "#188b66", "#b75ea6", "#cffff9", "#ffff1e", "#8a6dff", "#bf5b1f"] };
const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

export const dashes_of = (at: number) => DASHES[(at >> 3) % 4]!;
export const colour_of = (at: number) => (is_dark() ? COLOURS.dark : COLOURS.light)[at % 8]!;
