// Spans as the server sends them, and in words what is drawn of them.
import { seconds_words } from "./phase_colours";

export interface Share { name: number; calls: number; seconds: number; share: number }
export interface Lane { worker: string; rank: number; track: string; spans: number; bars: number[][]; shares: Share[] }
export interface Spans {
  from: number; to: number; names: string[]; tracks: string[]; workers: string[]; lanes: Lane[]; left_out: number; cut: boolean; spans_gone: boolean;
}
export interface Bar { start: number; length: number; name: string; step: number; merged: number; depth: number }
const DEEPEST = 4;

// What lies inside another stands a line lower.
export function bars_of(lane: Lane, names: string[]): Bar[] {
  const holding: number[] = [];
  return lane.bars.map(([start, length, name, step, merged]) => {
    while (holding.length > 0 && holding[holding.length - 1]! <= start!) holding.pop();
    const depth = Math.min(holding.length, DEEPEST - 1);
    holding.push(start! + length!);
    return { start: start!, length: length!, name: names[name!] ?? "", step: step!, merged: merged!, depth };
  });
}

export const bar_words = (bar: Bar) => `${bar.merged > 1 ? `${bar.merged} spans, mostly ${bar.name}` : bar.name}, step ${bar.step}, ${bar.length === 0 ? "an instant" : seconds_words(bar.length / 1e6)}`;

export function lanes_sentence(answer: Spans): string {
  const spans = answer.lanes.reduce((sum, lane) => sum + lane.spans, 0);
  const drawn = answer.lanes.reduce((sum, lane) => sum + lane.bars.length, 0);
  return `${spans} spans in ${answer.lanes.length} ${answer.lanes.length === 1 ? "lane" : "lanes"}, ${seconds_words((answer.to - answer.from) / 1e6)}` +
    `${drawn < spans ? `; what is below a pixel is merged: ${drawn} bars` : ""}.`;
}
