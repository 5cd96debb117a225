// Says above every screen that a store is not written, or was begun anew. It is asked after the screen, which must not wait for it; then the
// stream tells what changes. Without one it is asked again and again.
import { useEffect, useState } from "preact/hooks";
import { ask, type Status, type StoreState } from "./api";
import { Moment } from "./parts";
import { is_paused } from "./paused";
import { live, told_stores } from "./stream";

const FIRST_MS = 2000, EVERY_MS = 30_000;
const NAMES: Record<string, string> = { events: "runs and issues", curves: "curves" };

function Notice({ one }: { one: StoreState }) {
  const what = NAMES[one.store] ?? one.store;
  const aside = one.set_aside;
  return (
    <>
      {one.state === "full" && <p class="panel waiting">The disk is full. New {what} are missing here until it has room; then they are filled in.</p>}
      {one.state === "stopped" && <p class="panel waiting">New {what} are missing here. The store cannot be written: {one.reason}.</p>}
      {aside && <p class="panel waiting">On <Moment at={aside.time} /> the store of {what} was found {aside.damaged ? "damaged" : "to be of another version or place"}. It is filled again from the topics, without what they have dropped.
        The old file is <code>{aside.file}</code>. Delete it to remove this notice.</p>}
    </>);
}

export function StoreNotice() {
  const [stores, set_stores] = useState<StoreState[]>([]);
  const streams = live.value;
  useEffect(() => {
    let timer = 0;
    const look = () => {
      if (!streams) timer = window.setTimeout(look, EVERY_MS);
      if (document.hidden || is_paused()) return;
      const before = told_stores.value;
      ask<Status>("/status").then((status) => {
        set_stores(status.stores ?? []);
        if (told_stores.value === before) told_stores.value = new Map();  // else what was told may be newer
      }, () => { if (streams) timer = window.setTimeout(look, EVERY_MS); });
    };
    timer = window.setTimeout(look, FIRST_MS);
    return () => clearTimeout(timer);
  }, [streams]);
  const told = told_stores.value;
  return <div role="status">{stores.map((one) => <Notice key={one.store} one={told.get(one.store) ?? one} />)}</div>;
}
