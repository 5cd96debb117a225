// The page as it was at a moment that its address names (`at`): what can be told so is asked so, and nothing moves.
import { computed } from "@preact/signals";
import { place, set_query } from "./place";

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
// What the API tells as it was.
const TOLD = /^\/(runs|issues|deliveries|commands|silences|nodes|nodes\/[^/?]+|runs\/[^/?]+|runs\/[^/?]+\/(history|series|hardware|nodes|system|system\/heatmap|resources)|issues\/[^/?]+\/[^/?]+)(\?|$)/;

// RFC 3339; null: the page shows now.
export const moment = computed(() => {
  const at = place.value.query.get("at") ?? "";
  return RFC3339.test(at) && !Number.isNaN(Date.parse(at)) ? at : null;
});

export const then_path = (path: string) =>
  moment.value && TOLD.test(path) ? `${path}${path.includes("?") ? "&" : "?"}at=${encodeURIComponent(moment.value)}` : path;

// A link of a page of the past leads into the same past.
export function then_link(to: string): string {
  if (!moment.value || !to.startsWith("/") || /[?&]at=/.test(to)) return to;
  return `${to}${to.includes("?") ? "&" : "?"}at=${encodeURIComponent(moment.value)}`;
}

export const as_of = (to: string, at: string) => `${to}${to.includes("?") ? "&" : "?"}at=${encodeURIComponent(at)}`;
export const back_to_now = () => set_query("at", "");
export const now_here = () => (moment.value ? Date.parse(moment.value) : Date.now());

// A millisecond before: what happened at `at` had not happened.
export const before = (at: string) => new Date(Date.parse(at) - 1).toISOString();
