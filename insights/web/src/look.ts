// How the page looks to who reads it: its theme and its time zone. The address says it, else this browser remembers.
import { signal } from "@preact/signals";

const kept = (name: string): string => {
  const asked = new URLSearchParams(location.search).get(name);
  if (asked !== null) return asked;
  try { return localStorage.getItem(`tocsin.${name}`) ?? ""; } catch { return ""; }
};
const keep = (name: string, value: string) => { try { localStorage.setItem(`tocsin.${name}`, value); } catch { /* a private window */ } };

const system = matchMedia("(prefers-color-scheme: dark)");
export const theme = signal<string>(kept("theme"));  // "": as the system
export const is_dark = () => (theme.value ? theme.value === "dark" : system.matches);

// Calls `act` whenever light has become dark, or the other way; gives what ends it.
export function watch_theme(act: () => void): () => void {
  const left = theme.subscribe(act);
  system.addEventListener("change", act);
  return () => { left(); system.removeEventListener("change", act); };
}

export function turn_theme(): void {
  theme.value = is_dark() ? "light" : "dark";
  keep("theme", theme.value);
}
theme.subscribe((name) => {
  if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
});

function known_zone(name: string): string {
  try { return name ? new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone : "UTC"; } catch { return "UTC"; }
}
export const here = new Intl.DateTimeFormat().resolvedOptions().timeZone;
export const zone = signal<string>(known_zone(kept("tz") === "local" ? here : kept("tz")));

export function turn_zone(): void {
  zone.value = zone.value === "UTC" ? here : "UTC";
  keep("tz", zone.value);
}

// "2026-11-27 22:14:05 UTC", in the zone that is shown.
export function moment_words(at: string, name: string): string {
  if (name === "UTC") return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
  const parts = new Map(new Intl.DateTimeFormat("en-GB", { timeZone: name, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit",
    hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" }).formatToParts(new Date(at)).map((one) => [one.type, one.value]));
  const of = (part: Intl.DateTimeFormatPartTypes) => parts.get(part) ?? "";
  return `${of("year")}-${of("month")}-${of("day")} ${of("hour")}:${of("minute")}:${of("second")} ${of("timeZoneName")}`;
}
