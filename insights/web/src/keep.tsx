// A pinned run is kept: whatever its age, and whatever room the store has. Who has pinned it, and the button.
import { useEffect, useState } from "preact/hooks";
import { Form, type Deed } from "./act";
import { ask, tell, type RunRow, type Status } from "./api";
import { Moment } from "./parts";
import { changed } from "./stream";

function deed_of(run: RunRow): Deed {
  const pinned = run.pin !== null;
  return {
    id: "pin", title: pinned ? "Take the pin away" : "Pin this run", role: "operator", button: pinned ? "Take the pin away" : "Keep this run", ready: () => true,
    fields: () => <p>{pinned ? "The run is then kept no longer than others." : "Its curves, issues and history stay, whatever their age and the room they take, until somebody takes the pin away."}</p>,
    go: async (_text, once) => {
      await tell(`/runs/${encodeURIComponent(run.uid)}/pin`, { pinned: !pinned }, once, "PUT");
      return "";
    },
  };
}

export function Kept({ run }: { run: RunRow }) {
  const [who, set_who] = useState<Status | null>(null);
  const [open, set_open] = useState(false);
  useEffect(() => { if (open) ask<Status>("/status").then(set_who, () => set_who(null)); }, [open, changed.value]);
  const deed = deed_of(run);
  return (
    <div class="kept">
      <p>{run.pin && <>Pinned by <b>{run.pin.by}</b>, <Moment at={run.pin.at} />. </>}
        <button type="button" aria-expanded={open} onClick={() => set_open(!open)}>{deed.title}</button></p>
      {open && <Form key={deed.title} deed={deed} who={who} done={() => { set_open(false); changed.value += 1; }} close={() => set_open(false)} />}
    </div>
  );
}
