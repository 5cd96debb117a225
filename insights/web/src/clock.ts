// Times along an axis, in the zone that is shown.
import { moment_words, zone } from "./look";

export const clock = (millis: number) => moment_words(new Date(millis).toISOString(), zone.value).slice(11, 19);
// "22:14:05 UTC"
export const clock_words = (millis: number) => moment_words(new Date(millis).toISOString(), zone.value).slice(11);

export const TIME_STRIDES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000].map((one) => one * 1000);
