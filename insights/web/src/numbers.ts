// Numbers with their units, as they stand in the text of an element.

// What a unit looks like; of two that begin alike the longer one stands first.
const UNITS = ["%", "°C", "(?:[kMGT]i?)?B(?:/s|/interval)?", "By(?:/s)?", "min", "ms", "µs", "us", "ns", "s", "h", "d", "k?W", "[kMG]?Hz", "(?:steps|tokens|samples)/s", "GPU-h"].join("|");
const VALUE = "(?:\\d+(?:\\.\\d+)?(?:e[-+−]?\\d+)?|NaN|Inf(?:inity)?|∞)";
const END = "(?![\\p{L}\\d_:/×-]|\\.\\d)";
// Not a part of a name, a version, an address or a time. "3 min 12 s" is one number.
const NUMBERS = new RegExp(`(^|[^\\p{L}\\d_.:/×#@-])([-−+]?${VALUE}(?:[ \\u00a0](?:${UNITS})${END}(?: \\d+ (?:min|s)${END})?|%)?)${END}`, "gu");

export interface Found { from: number; to: number; text: string }

export function numbers_in(text: string): Found[] {
  const out: Found[] = [];
  NUMBERS.lastIndex = 0;
  for (let one = NUMBERS.exec(text); one; one = NUMBERS.exec(text)) {
    const from = one.index + one[1]!.length;
    out.push({ from, to: from + one[2]!.length, text: one[2]!.replaceAll("\u00a0", " ").replaceAll("−", "-") });
  }
  return out;
}
