// Small parts that several screens share.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refused, sign_in, type IssueRow } from "./api";
import { put_on_clipboard } from "./copies";
import { moment_words, zone } from "./look";
import { now_here, then_link } from "./past";
import { is_paused } from "./paused";
import { go } from "./place";
import { changed } from "./stream";

const LETTER: Record<string, string> = { critical: "C", error: "E", warning: "W", info: "i" };

export function Severity({ of }: { of: string }) {
  return <span class={`severity ${of}`} title={of} role="img" aria-label={of}>{LETTER[of] ?? "?"}</span>;
}

export function Link({ to, children, kind }: { to: string; children: ComponentChildren; kind?: string }) {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(then_link(to));
  };
  return <a href={then_link(to)} class={kind} onClick={follow}>{children}</a>;
}

export const issue_path = (one: { key: string; episode: number | null }) =>
  `/issues/${encodeURIComponent(one.key)}/${one.episode ?? "newest"}`;

export function IssueLink({ issue }: { issue: IssueRow }) {
  return <Link to={issue_path(issue)}>{issue.summary}</Link>;
}

export function Moment({ at }: { at: string | null }) {
  if (!at) return <span>–</span>;
  return <time dateTime={at} title={at}>{moment_words(at, zone.value)}</time>;
}

export const told_words = (count: number) => (count > 0 ? `${count} ${count === 1 ? "message" : "messages"} delivered` : "nobody was told");

export function ago(at: string): string {
  const seconds = Math.max(0, (now_here() - Date.parse(at)) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

export function Command({ line, says }: { line: string; says: string }) {
  const [copied, set] = useState(false);
  const copy = async () => {
    set(await put_on_clipboard(line));
    setTimeout(() => set(false), 1500);
  };
  return (
    <div class="command">
      <span>{says}</span>
      <code>{line}</code>
      <button type="button" onClick={copy} aria-label={`copy: ${line}`}>{copied ? "copied" : "copy"}</button>
    </div>
  );
}

export function Panel({ title, children, id }: { title: string; children: ComponentChildren; id?: string }) {
  return <section class="panel" id={id}><h2>{title}</h2>{children}</section>;
}

export function SignIn({ done, says }: { done: () => void; says?: string }) {
  const [token, set_token] = useState("");
  const [why, set_why] = useState("");
  const send = (event: Event) => {
    event.preventDefault();
    sign_in(token).then(done, (error: Error) => set_why(error.message));
  };
  return (
    <form class="panel" onSubmit={send}>
      <h2>Sign in</h2>
      {says && <p>{says}</p>}
      <label>Token <input type="password" value={token} autocomplete="current-password"
        onInput={(event) => set_token(event.currentTarget.value)} /></label>
      <button type="submit">Sign in</button>
      {why && <p role="alert">{why}</p>}
    </form>
  );
}

// What `load` gives, asked again when a run has changed; the newest answer stays while one is asked.
export function Asked<T>({ load, name, children }:
  { load: () => Promise<T>; name: string; children: (answer: T) => ComponentChildren }) {
  const [answer, set_answer] = useState<{ name: string; value: T } | null>(null);
  const [error, set_error] = useState<Error | null>(null);
  const [again, set_again] = useState(0);
  const turn = changed.value;
  useEffect(() => {
    let left = false;
    let later = 0;
    load().then(
      (value) => { if (!left) { set_answer({ name, value }); set_error(null); } },
      (why: Error) => {
        if (left) return;
        set_error(why);
        if (why instanceof Refused && why.status === 503) later = window.setTimeout(() => { if (!is_paused()) set_again((count) => count + 1); }, 2000);
      });
    return () => { left = true; window.clearTimeout(later); };
  }, [name, turn, again]);
  if (error instanceof Refused && error.status === 401) return <SignIn done={() => set_again(again + 1)} />;
  const value = answer?.name === name ? answer.value : null;
  return (
    <>
      {error && <p class="fault" role="alert">{error.message} <button type="button"
        onClick={() => set_again(again + 1)}>Ask again</button></p>}
      {value !== null && children(value)}
    </>
  );
}
