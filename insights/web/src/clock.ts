// Times along an axis, in the zone that is shown.
import { moment_words, zone } from "./look";

export const clock = (millis: number) => moment_words(new Date(millis).toISOString(), zone.value).slice(11, 19);
// "22:14:05 UTC"
export const clock_words = (millis: number) => moment_words(new Date(millis).toISOString(), zone.value).slice(11);

// With milliseconds where the time that is shown, in milliseconds, is short.
export const fine_clock = (millis: number, span: number) => clock(millis) + (span < 60_000 ? `.${String(Math.floor(millis) % 1000).padStart(3, "0")}` : "");
export const fine_words = (millis: number, span: number) => fine_clock(millis, span) + clock_words(millis).slice(8);

export const TIME_STRIDES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000].map((one) => one * 1000);
