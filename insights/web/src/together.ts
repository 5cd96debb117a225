// Questions about runs that are asked at the same moment, as one request: a tick makes every chart ask.
import { ask, Refused } from "./api";
import { moment } from "./past";
import { after_pause } from "./paused";

interface Waiting { path: string; done: (body: unknown) => void; failed: (why: Error) => void }
interface Answer { status: number; body: { detail?: string } }

const MOST = 32;  // of one request
let waiting: Waiting[] = [];

// "/runs/4e30/series?name=loss" as POST /query has it.
function query_of(path: string): { kind: string; run: string; parameters: Record<string, string> } | null {
  const [place, parameters] = path.split("?");
  const found = /^\/runs\/([^/]+)\/(.+)$/.exec(place!);
  if (!found) return null;
  return { kind: found[2]!, run: decodeURIComponent(found[1]!), parameters: Object.fromEntries(new URLSearchParams(parameters)) };
}

async function send(some: Waiting[]): Promise<void> {
  if (some.length === 1) return ask(some[0]!.path).then(some[0]!.done, some[0]!.failed);
  try {
    const body = JSON.stringify({ queries: some.map((one) => query_of(one.path)) });
    const answer = await after_pause(fetch("/api/v1/query", { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" }, body }));
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(answer.status, told.detail ?? `the server answered ${answer.status}`);
    (told.answers as Answer[]).forEach((one, at) =>
      one.status < 400 ? some[at]!.done(one.body) : some[at]!.failed(new Refused(one.status, one.body.detail ?? `the server answered ${one.status}`)));
  } catch (why) {
    for (const one of some) one.failed(why as Error);
  }
}

export function ask_together<T>(path: string): Promise<T> {
  if (query_of(path) === null || moment.value) return ask<T>(path);
  return new Promise<T>((done, failed) => {
    if (waiting.length === 0) setTimeout(() => {
      for (const all = waiting.splice(0); all.length > 0;) void send(all.splice(0, MOST));
    });
    waiting.push({ path, done: done as (body: unknown) => void, failed });
  });
}
