// Whether the page follows what happens, in the bar.
import { clock } from "./clock";
import { go_on, paused } from "./paused";
import { live, polled } from "./stream";

const live_words = () => !live.value ? "not live" : polled.value ? "live, asking" : "live";

export function LiveSign() {
  const since = paused.value;
  if (since !== null) {
    return <span class="live" role="status"><button type="button" class="plain" onClick={go_on}><span aria-hidden="true">‖ </span>paused at {clock(since)}<span class="word">, Space to go on</span></button></span>;
  }
  return <span class={live.value ? "live good" : "live dim"} role="status" aria-label={live_words()} title={polled.value ? "A proxy between this browser and the server holds the stream back. The page asks for events instead." : undefined}>{live.value ? "●" : "○"}<span class="word"> {live_words()}</span></span>;
}
