// A run that moves all the time is not asked for all the time.
import { useEffect, useRef, useState } from "preact/hooks";
import { is_paused } from "./paused";

const LOOK_AGAIN = 2000;  // ms, while the run moves

// Counts with what moves, but not as often.
export function useSlow(value: number): number {
  const [slow, set] = useState(value);
  const due = useRef(0);
  useEffect(() => {
    if (value === slow || due.current) return;
    due.current = window.setTimeout(() => { due.current = 0; if (!is_paused()) set(value); }, LOOK_AGAIN);
  }, [value, slow]);
  useEffect(() => () => window.clearTimeout(due.current), []);
  return slow;
}
