// Questions to /api/v1, and changes by it.
import { then_path } from "./past";
import { after_pause } from "./paused";

export interface IssueRow {
  key: string; episode: number; event_id: string; rule: string; severity: string; status: string;
  first_sign: boolean; summary: string; attempt: number; mode: string | null; step: number | null;
  tensor: string | null; worker: string | null; starts_at: string; ends_at: string | null; reports: number;
}
export interface Pin { by: string; at: string; origin: string }
export interface RunRow {
  uid: string; job: string | null; labels: Record<string, string>; state: "running" | "ended";
  outcome: string | null; attempt: number; world_size: number; step: number | null;
  started_at: string | null; ended_at: string | null; heard_at: string;
  issues: { open: number; total: number }; told: number; pin: Pin | null; headline: IssueRow | null;
}
export interface Delivery {
  id: string; time: string; integration: string; type: string; receiver: string; state: string;
  code: string | null; detail: string | null; latency_ms: number; reason: string; attempt: number;
}
export interface Stop {
  state: string; mode: string; requested_by: string | null; requested_at: string; rule: string | null;
  reason: string | null; step: number | null; checkpoint_failure: string | null; exit_code: number | null;
  checkpoint: { path: string; host: string | null; bytes: number; step: number | null } | null;
  ranks: { asked: number; heard: number; stopped: number; refused: number };
}
export interface Evidence {
  observed?: { name: string; value: number | string }; operator?: string;
  threshold?: { name: string; value: number | string };
  tensor?: { name: string; shape?: number[]; collection?: string; dtype?: string };
  affected?: { hit: number; evaluated: number; worst: { unit: string; value: number | string }[] };
  values?: Record<string, unknown>;
}
export interface Issue {
  key: string; episode: number | null; event_id: string; rule: string; severity: string; status: string;
  resolution: string | null; summary: string; description: string | null; recommendation: string | null;
  runbook_url: string | null; labels: Record<string, string>; run: { uid: string; attempt: number } | null;
  job: string | null; step: number | null; mode: string | null; tensor: string | null; worker: string | null;
  starts_at: string | null; ends_at: string | null; ending: { summary: string; step: number | null } | null;
  caused_by: { key: string; rule: string; step: number | null }[]; silenced_by: string[]; reports: number;
  acked_by?: string | null; inhibited_by?: unknown[]; muted_by?: string[];
}
export interface WaitingStop { command_id: string; state: string; run: string; reason: string }
export interface IssuePage {
  issue: Issue; deliveries: Delivery[]; evidence: Evidence | null; run: RunRow | null; stop: Stop | null; changes: ChangeRow[];
  issues_of_run: IssueRow[]; earlier: IssueRow[]; as_of: string; verdict: Verdict | null; notes: Note[];
}
export interface Verdict { verdict: "useful" | "noise" | "known"; by: string; at: string; note: string | null }
export interface Note { id: string; by: string; at: string; text: string }
export interface RuleRow {
  rule: string; type: string; version: string; status: string; reason: string | null; missing: string[];
  evaluations: Record<string, number>; summary: Record<string, unknown> | null; time: string;
}
export interface ChangeRow { command_id: string; kind: "capture" | "profile" | "setting"; step: number; text: string; by: string | null; time: string }
export interface AttemptRow {
  attempt: number; number: number; started_at: string | null; ended_at: string | null;
  world_size: number | null; outcome: string | null; exit_code: number | null;
}
export interface RunPage {
  run: RunRow; issues: IssueRow[]; stop: Stop | null; changes: ChangeRow[]; deliveries: Delivery[]; as_of: string;
  rules: RuleRow[]; attempts: AttemptRow[];
}
export interface HistoryLine {
  time: string; kind: string; text: string; detail: string | null; key?: string; severity?: string;
  state?: string; step?: number | null;
}
export interface Status { version: string; cluster: string; since: string; auth: string; who: { name: string; role: string; by: string }; csrf: string | null; token_file: string | null; stores: StoreState[] | null }
export interface StoreState { store: string; state: string; reason: string | null; set_aside: { time: string; file: string; damaged: boolean } | null }

export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

export async function ask<T>(path: string): Promise<T> {
  const answer = await after_pause(fetch(`/api/v1${then_path(path)}`, { headers: { Accept: "application/json" } }));
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.detail ?? `the server answered ${answer.status}`);
  return body as T;
}

// A change. `once`: who sends it twice does it once; empty: it changes nothing (a preview).
export async function tell<T>(path: string, body: unknown, once: string, method = "POST"): Promise<T> {
  const { csrf } = await ask<Status>("/status");
  const headers: Record<string, string> = { "Content-Type": "application/json", Accept: "application/json" };
  if (csrf) headers["X-Tocsin-CSRF"] = csrf;
  if (once) headers["Idempotency-Key"] = once;
  const answer = await fetch(`/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, found.detail ?? `the server answered ${answer.status}`);
  return found as T;
}

export async function sign_in(token: string): Promise<void> {
  const answer = await fetch("/api/v1/session", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
  });
  if (answer.ok) return;
  const body = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, body.detail ?? "the token was refused");
}
