// What the last steps spent their time on: a stacked column for each, the median of the ranks.
import { useEffect, useRef, useState } from "preact/hooks";
import { useAsked } from "./curves";
import { phase_colour, seconds_words } from "./phase_colours";
import { useSlow } from "./slow";
import { turn_of } from "./stream";
import { watch_theme } from "./look";
import { StackTable } from "./wide_table";

interface Phase { name: string | null; seconds: number; min: number; max: number }
interface Step { step: number; ranks: number; seconds: number; phases: Phase[] }
const HIGH = 200;
const LEFT = 64;
const called = (name: string | null) => name ?? "no phase";
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function drawn(canvas: HTMLCanvasElement, width: number, steps: Step[], hidden: Set<string>, at: number | null): void {
  const unit = devicePixelRatio || 1;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${HIGH + 24}px`;
  canvas.width = Math.round(width * unit);
  canvas.height = Math.round((HIGH + 24) * unit);
  const ctx = canvas.getContext("2d")!;
  ctx.scale(unit, unit);
  const sums = steps.map((step) => step.phases.filter((one) => !hidden.has(called(one.name))).reduce((sum, one) => sum + one.seconds, 0));
  const most = Math.max(...sums, 1e-9);
  const wide = (width - LEFT) / steps.length;
  ctx.font = "13px system-ui, sans-serif";
  ctx.fillStyle = css("--dim");
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const part of [0, 0.5, 1]) {
    const y = HIGH - part * (HIGH - 12);
    ctx.fillText(seconds_words(most * part), LEFT - 6, Math.min(HIGH - 6, y));
    ctx.globalAlpha = 0.25;
    ctx.fillRect(LEFT, y, width - LEFT, 1);
    ctx.globalAlpha = 1;
  }
  steps.forEach((step, which) => {
    let y = HIGH;
    for (const phase of step.phases) {
      if (hidden.has(called(phase.name))) continue;
      const high = phase.seconds / most * (HIGH - 12);
      ctx.fillStyle = phase_colour(phase.name ?? "");
      ctx.fillRect(LEFT + which * wide + 1, y - high, Math.max(1, wide - 2), high);
      y -= high;
    }
    if (which === at) {
      ctx.strokeStyle = css("--text");
      ctx.lineWidth = 2;
      ctx.strokeRect(LEFT + which * wide + 1, y, Math.max(1, wide - 2), HIGH - y);
    }
    ctx.fillStyle = css("--dim");
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    if (which % Math.max(1, Math.ceil(50 / wide)) === 0) ctx.fillText(String(step.step), LEFT + (which + 0.5) * wide, HIGH + 5);
  });
}

const words = (step: Step) => `step ${step.step}: ${seconds_words(step.seconds)}; ` + step.phases.filter((one) => one.seconds > 0 || one.max > 0).map((one) =>
  `${called(one.name)} ${seconds_words(one.seconds)}${step.ranks > 1 && one.min !== one.max ? ` (${seconds_words(one.min)} to ${seconds_words(one.max)})` : ""}`).join(", ");

function StepFigure({ steps }: { steps: Step[] }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, set_at] = useState<number | null>(null);
  const [hidden, set_hidden] = useState<Set<string>>(new Set());
  const [turn, set_turn] = useState(0);
  useEffect(() => {
    const again = () => set_turn((one) => one + 1);
    const watch = new ResizeObserver(again);
    watch.observe(box.current!);
    const left = watch_theme(again);
    return () => { watch.disconnect(); left(); };
  }, []);
  useEffect(() => { drawn(canvas.current!, Math.max(200, box.current!.clientWidth), steps, hidden, at); }, [steps, hidden, at, turn]);
  const names = [...new Set(steps.flatMap((step) => step.phases.map((one) => called(one.name))))];
  const sums = names.map((name) => ({ name, seconds: steps.reduce((sum, step) => sum + (step.phases.find((one) => called(one.name) === name)?.seconds ?? 0), 0) })).sort((a, b) => b.seconds - a.seconds);
  const whole = steps.reduce((sum, step) => sum + step.seconds, 0);
  const slowest = steps.reduce((a, b) => (b.seconds > a.seconds ? b : a));
  const said = `Steps ${steps[0]!.step} to ${steps[steps.length - 1]!.step}${steps[0]!.ranks > 1 ? `, medians of ${steps[0]!.ranks} ranks` : ""}: ${seconds_words(whole / steps.length)} each, slowest step ${slowest.step} with ${seconds_words(slowest.seconds)}. Most time: ${sums[0]!.name}, ${Math.round(sums[0]!.seconds / Math.max(1e-12, whole) * 100)} %.`;
  const move = (to: number) => set_at(Math.min(steps.length - 1, Math.max(0, to)));
  const press = (event: KeyboardEvent) => {
    const acts: Record<string, () => void> = { ArrowLeft: () => move((at ?? steps.length) - 1), ArrowRight: () => move((at ?? -1) + 1), Home: () => move(0), End: () => move(steps.length - 1) };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]!();
  };
  const turn_name = (name: string) => { const next = new Set(hidden); if (!next.delete(name)) next.add(name); set_hidden(next); };
  return (
    <figure class="heat">
      <p class="chips" role="group" aria-label="phases">{names.map((name) => <button key={name} type="button" aria-pressed={!hidden.has(name)} onClick={() => turn_name(name)}><i class="swatch" style={{ background: phase_colour(name === "no phase" ? "" : name) }} /> {name}</button>)}</p>
      <p class="read" aria-live="polite">{at !== null && steps[at] ? words(steps[at]!) : " "}</p>
      <div class="cells" ref={box} tabIndex={0} role="img" onKeyDown={press} aria-label={`${said} Arrow keys read steps.`}
        onPointerMove={(event) => { const bounds = box.current!.getBoundingClientRect(); const place = Math.floor((event.clientX - bounds.left - LEFT) / ((bounds.width - LEFT) / steps.length)); if (place >= 0) move(place); }}><canvas ref={canvas} /></div>
      <figcaption class="dim"><p>{said}</p></figcaption>
      <details><summary>Table</summary><StackTable first_too><thead><tr><th scope="col">step</th><th scope="col">whole</th>{names.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>{steps.map((step) => <tr key={step.step}><td>{step.step}</td><td>{seconds_words(step.seconds)}</td>{names.map((name) => <td key={name}>{seconds_words(step.phases.find((one) => called(one.name) === name)?.seconds ?? 0)}</td>)}</tr>)}</tbody></StackTable></details>
    </figure>
  );
}

export function StepTimesPanel({ uid, last }: { uid: string; last: number }) {
  const turn = useSlow(turn_of(uid));
  const { answer, error } = useAsked<{ items: Step[] }>(`/runs/${encodeURIComponent(uid)}/steps?last=${last}`, turn);
  return (
    <section class="panel" id="step-times"><h2>Time in the last {last} steps</h2>
      {error && <p class="fault" role="alert">{error.message}</p>}
      {answer && answer.items.length === 0 && <p class="dim">No step of training has ended yet: <code>hook.step()</code> ends one.</p>}
      {answer && answer.items.length > 0 && <StepFigure steps={answer.items} />}
    </section>
  );
}
