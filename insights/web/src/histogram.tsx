// How the elements of a tensor are spread over values, step by step: a row is a bin, colour is the share of the elements.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused } from "./api";
import type { Mark } from "./marks";
import { useMarks } from "./marks_list";
import { SavePicture } from "./save_picture";
import { useAsked } from "./curves";
import { exactly } from "./curve_data";
import { HeatCanvas } from "./heat";
import { heat_press, speaks } from "./heat_keys";
import { histogram_read, histogram_sentence, percent, picture_of, type Histogram } from "./histogram_data";

const TALL = 330;

function HistogramFigure({ one, name, marks: all_marks }: { one: Histogram; name: string; marks: Mark[] }) {
  const marks = useMarks(all_marks);
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HeatCanvas | null>(null);
  const [at, set_at] = useState<[number, number] | null>(null);
  const heat = useMemo(() => picture_of(one, name), [one, name]);
  useEffect(() => {
    const made = new HeatCanvas(box.current!, { point: (row, column) => set_at([row, column]), choose: () => undefined }, TALL);
    canvas.current = made;
    return () => made.leave();
  }, []);
  useEffect(() => { canvas.current?.show(heat, marks, null); }, [heat, marks]);
  const said = histogram_sentence(one, name);
  const read = at && at[0] < heat.rows.length && at[1] < heat.columns ? histogram_read(one, ...at) : " ";
  return (
    <figure class="heat">
      <SavePicture of={canvas} title={`Values of ${name}`} x="step" y="value" />
      <p class="read" aria-live={speaks(box.current)}>{read}</p>
      <div class="cells" ref={box} tabIndex={0} role="img" onKeyDown={(event) => heat_press(event, canvas.current)}
        aria-label={`Values of ${said} Arrow keys read cells.`} />
      <p class="legend">{heat.lo !== null && <span>{percent(10 ** heat.lo)} <i class="ramp" /> {percent(10 ** heat.hi!)} of the elements, logarithmic</span>}
        <span><i class="none" /> no element</span><span><i class="hatch" /> not finite</span><span><i class="checker" /> no histogram</span></p>
      <figcaption class="dim"><p>{said}</p></figcaption>
    </figure>
  );
}

export function HistogramPanel({ run, name, mode, range, turn, marks }:
  { run: string; name: string; mode: string; range: string; turn: number; marks: Mark[] }) {
  const { answer, error } = useAsked<Histogram>(`${run}/histogram?name=${encodeURIComponent(exactly([name]))}&mode=${mode}&cols=300${range}`, turn);
  if (error instanceof Refused && error.status === 401) return null;
  const count = answer?.histograms.reduce((sum, one) => sum + one, 0) ?? 0;
  return (
    <section class="panel" id="histogram"><h2>Values of the chosen tensor</h2>
      {error && <p class="fault" role="alert">{error.message}</p>}
      {answer && count === 0 && <div class="dim">
        {answer.histograms_gone ? <p>Older histograms of this run are gone: by their age (<code>store.keep.tensors</code>), or because curves.db was larger than <code>insights.max_curve_bytes</code>.</p>
          : <><p>No histogram of it was recorded in these steps. These lines record them for gradients, at each step that is captured:</p>
            <pre><code>{"capture:\n  collections: {gradients: {statistics: [histogram]}}"}</code></pre>
            <p>Tensors that are measured on a GPU have none.</p></>}</div>}
      {answer && count > 0 && <>
        <HistogramFigure key={name} one={answer} name={name} marks={marks} />
        {answer.thinned && <p class="dim">There are very many histograms: of each column the first are added up.</p>}
        {answer.histograms_gone && <p class="dim">Older histograms of this run are gone: by their age (<code>store.keep.tensors</code>), or because curves.db was larger than <code>insights.max_curve_bytes</code>.</p>}</>}
    </section>
  );
}
