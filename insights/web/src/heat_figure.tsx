// A heat map with its legend, what is read at the cursor, and its sentence.
import { useEffect, useRef, useState } from "preact/hooks";
import { short } from "./chart";
import { HeatCanvas } from "./heat";
import { heat_press, speaks } from "./heat_keys";
import { SavePicture } from "./save_picture";
import type { Mark } from "./marks";
import { useMarks } from "./marks_list";
import { cell_words, heat_sentence, HIGHEST, row_words, steps_of, value_of, type Heat } from "./heat_data";

function Legend({ heat }: { heat: Heat }) {
  return (
    <p class="legend">{heat.lo !== null && <span>{short(value_of(heat, 0))} <i class="ramp" /> {short(value_of(heat, HIGHEST))}</span>}
      {heat.scale === "log10" && <span><i class="zero" /> 0 or below</span>}<span><i class="hatch" /> not finite</span><span><i class="checker" /> no value</span></p>
  );
}

// `said`: its sentence, if rows are no tensors.
export function HeatFigure({ title, heat, marks: all_marks, selected, most, point, choose, said: told }:
  { title: string; heat: Heat; marks: Mark[]; selected: string | null; most: number; point?: (column: number) => void; choose?: (name: string, step: number) => void; said?: string }) {
  const marks = useMarks(all_marks);
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HeatCanvas | null>(null);
  const [at, set_at] = useState<[number, number] | null>(null);
  const now = useRef({ heat, point, choose });
  now.current = { heat, point, choose };
  useEffect(() => {
    const made = new HeatCanvas(box.current!, {
      point: (row, column) => { set_at([row, column]); now.current.point?.(column); },
      choose: (row, column) => now.current.choose?.(now.current.heat.rows[row]!.name, now.current.heat.from + (column + 1) * now.current.heat.width - 1),
    }, most);
    canvas.current = made;
    return () => made.leave();
  }, []);
  useEffect(() => { canvas.current?.show(heat, marks, selected); }, [heat, marks, selected]);
  const row = at ? heat.rows[at[0]] : undefined;
  const said = told ?? heat_sentence(heat);
  return (
    <figure class="heat">
      <SavePicture of={canvas} title={title} x="step" />
      <p class="read" aria-live={speaks(box.current)}>{at && row ? `${steps_of(heat, at[1])}, ${row_words(row)}: ${heat.stat} ${cell_words(heat, at[0], at[1])}` : " "}</p>
      <div class="cells" ref={box} tabIndex={0} role="img" onKeyDown={(event) => heat_press(event, canvas.current)}
        aria-label={`${said} ${marks.map((mark) => mark.text).join(". ")} Arrow keys read cells${choose ? ", Enter chooses the tensor" : ""}.`} />
      <Legend heat={heat} />
      <figcaption class="dim"><p>{said}</p></figcaption>
    </figure>
  );
}
