// Events asked for one answer at a time: some proxies hold a stream back until it ends, and a stream has no end.
import { ask } from "./api";

const MOST_SECONDS = 20;           // that the server waits for something to tell
const AFTER_FAILURES = [1, 2, 5, 10];  // seconds

export interface PolledEvent { event: string; data: unknown }
interface Answer { cursor: string; reset: string | null; events: PolledEvent[] }

// Tells each event, `up` after an answer and `lost` after a failure, until what it gives is called.
export function poll_events(tell: (event: PolledEvent) => void, up: () => void, lost: () => void): () => void {
  let left = false;
  const go = async () => {
    let cursor = "";
    let failures = 0;
    while (!left) {
      try {
        const answer = await ask<Answer>(`/stream?poll=${MOST_SECONDS}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
        if (left) return;
        if (failures > 0 || !cursor) up();
        failures = 0;
        cursor = answer.cursor;
        if (answer.reset) tell({ event: "reset", data: {} });
        answer.events.forEach(tell);
      } catch {
        if (left) return;
        lost();
        const wait = AFTER_FAILURES[Math.min(failures++, AFTER_FAILURES.length - 1)]!;
        await new Promise((done) => setTimeout(done, wait * 1000));
      }
    }
  };
  void go();
  return () => { left = true; };
}
