// Beside a chart: saves what it shows as a PNG or an SVG. The code that draws is loaded with the first press.
import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import type { Chart } from "./chart";
import type { HeatCanvas } from "./heat";

// `x`, `y`: what the axes are of, with their units.
export interface PictureWords { title: string; x: string; y?: string | undefined }

export function SavePicture({ of, title, x, y }: PictureWords & { of: RefObject<Chart | HeatCanvas | null> }) {
  const [fault, set_fault] = useState("");
  const save = (kind: "png" | "svg", button: HTMLElement) => {
    if (!of.current) return;
    const shown = of.current;
    set_fault("");
    import("./heavy").then((all) => all.save_picture(shown, { title, x, y }, kind, button.closest("figure")!)).catch((why: Error) => set_fault(why.message));
  };
  return (
    <span class="saves">{(["png", "svg"] as const).map((kind) => (
      <button key={kind} type="button" class="plain" aria-label={`${kind.toUpperCase()} of ${title}`} title="Save what this chart shows now"
        onClick={(event) => save(kind, event.currentTarget)}>{kind.toUpperCase()}</button>))}
      {fault && <span class="fault" role="alert">Not saved: {fault}. Try again.</span>}</span>
  );
}
