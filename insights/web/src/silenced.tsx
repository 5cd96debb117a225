// By which silences an issue is held back: who made them, until when, and why.
import { useEffect, useState } from "preact/hooks";
import { ask } from "./api";
import { Moment } from "./parts";

interface Silence { id: string; created_by: string; comment: string; ends_at: string; until_resolved: boolean }

export function SilencedBy({ ids }: { ids: string[] }) {
  const [known, set_known] = useState<Silence[]>([]);
  useEffect(() => {
    if (ids.length > 0) ask<{ items: Silence[] }>("/silences?state=active&limit=1000").then((all) => set_known(all.items), () => set_known([]));
  }, [ids.join()]);
  return (
    <>{ids.map((id) => {
      const silence = known.find((one) => one.id === id);
      return silence ? <p key={id}>Silenced by <b>{silence.created_by}</b> {silence.until_resolved ? "until it is over, at the latest" : "until"} <Moment at={silence.ends_at} />: {silence.comment || "no reason given"}</p>
        : <p key={id}>Silenced by {id}.</p>;
    })}</>
  );
}
