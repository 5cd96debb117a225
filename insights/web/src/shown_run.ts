// The run or the screen that is shown, as the names of saved files begin.
export const shown_run = { job: "", uid: "" };
export function show_run(run: { job: string | null; uid: string } | null, screen = ""): void {
  shown_run.job = run ? run.job || run.uid.slice(0, 8) : screen;
  shown_run.uid = run?.uid ?? "";
}
