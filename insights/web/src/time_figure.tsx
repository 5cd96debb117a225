// Lines over time with what is read at the cursor, which all charts of a screen share; their sentences and their table.
import { useEffect, useRef } from "preact/hooks";
import { attempt_at, stretches_words, type Stretch } from "./attempts";
import { press_chart } from "./chart_keys";
import { Chart } from "./chart";
import type { Mark } from "./marks";
import { clock } from "./clock";
import { colour_of } from "./colours";
import { amount, lines_of_samples, samples_read, samples_sentence, type Samples, type SystemAnswer } from "./system_data";
import { zone } from "./look";
import { SavePicture } from "./save_picture";
import { StackTable } from "./wide_table";
import { useMarks } from "./marks_list";

export interface Form { id: string; title: string; unit: string; factor: number; top?: number }
const MOST_ROWS = 200;
const NONE: Mark[] = [];
const WHOLE: Stretch[] = [];

function SamplesTable({ all, labels, form }: { all: Samples[]; labels: string[]; form: Form }) {
  return (
    <details><summary>Table</summary>
      {all.map((one, which) => (
        <StackTable key={one.name} first_too><caption>{form.title}, {labels[which]}{one.x0.length > MOST_ROWS && `: the last ${MOST_ROWS} of ${one.x0.length} points`}</caption>
          <thead><tr><th scope="col">time ({zone.value})</th><th scope="col">mean</th><th scope="col">least</th><th scope="col">greatest</th><th scope="col">samples</th></tr></thead>
          <tbody>{one.x0.map((x, at) => ({ x, at })).slice(-MOST_ROWS).map(({ x, at }) => (
            <tr key={x}><td>{clock(x)}</td>{[one.mean, one.min, one.max].map((column, k) => <td key={k}>{column[at] == null ? "–" : amount(column[at]! * form.factor, form.unit)}</td>)}<td>{one.n[at]}</td></tr>))}</tbody></StackTable>))}
    </details>
  );
}

export function TimeFigure({ form, all, labels, answer, at, point, zoom, marks: all_marks = NONE, stretches = WHOLE }:
  { marks?: Mark[]; stretches?: Stretch[]; form: Form; all: Samples[]; labels: string[]; answer: SystemAnswer; at: number | null; point: (x: number | null) => void; zoom: (from: number | null, to: number | null) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const act = useRef({ point, zoom });
  act.current = { point, zoom };
  useEffect(() => {
    const made = new Chart(box.current!, { point: (x) => act.current.point(x), range: (from, to) => act.current.zoom(from, to), whole: () => act.current.zoom(null, null) }, false,
      { time: true, ...(form.top === undefined ? {} : { top: form.top }) });
    chart.current = made;
    return () => made.leave();
  }, []);
  const marks = useMarks(all_marks);
  const key = labels.join();
  useEffect(() => { chart.current?.show(lines_of_samples(all, labels, form.factor), marks, false, answer.from, answer.to, stretches); }, [answer, key, marks, stretches]);
  useEffect(() => { chart.current?.follow(at); }, [at, answer]);
  const press = (event: KeyboardEvent) => press_chart(event, { chart: chart.current, at, marks, whole: () => zoom(null, null) });
  const said = all.map((one, which) => samples_sentence(one, labels[which]!, form.factor, form.unit, answer.width));
  return (
    <figure class="chart" id={`chart-${form.id}`} data-name={form.id}>
      <SavePicture of={chart} title={form.title} x="time" y={form.unit} />
      <h3>{form.title}{all.length > 1 && <span class="keys">{labels.map((label, which) => <span key={label}><i style={{ background: colour_of(which) }} /> {label}</span>)}</span>}</h3>
      <p class="read" aria-live="polite">{at === null ? " " : samples_read(all, labels, form.factor, form.unit, at) + attempt_at(stretches, at, answer.width)}</p>
      <div class="plot" ref={box} tabIndex={0} role="img" onKeyDown={press} aria-label={`${form.title}. ${said.join(" ")} ${stretches_words(stretches, true)} ${marks.map((mark) => mark.text).join(". ")} Arrow keys read values, plus and minus zoom, 0 shows the whole run.`} />
      <figcaption class="dim">{said.map((text, which) => <p key={which}>{text}</p>)}</figcaption>
      <SamplesTable all={all} labels={labels} form={form} />
    </figure>
  );
}
