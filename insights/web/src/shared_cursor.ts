// One cursor for all charts and heat maps of a screen whose x means the same, such as steps of training.
type Hear = (x: number | null) => void;
const groups = new Map<string, Set<Hear>>();

export interface CursorPlace { tell: (x: number | null) => void; leave: () => void }

// `hear` is told where the others of the group put the cursor; `tell` tells them.
export function share_cursor(group: string, hear: Hear): CursorPlace {
  const all = groups.get(group) ?? new Set<Hear>();
  groups.set(group, all);
  all.add(hear);
  return {
    tell: (x) => { for (const one of all) if (one !== hear) one(x); },
    leave: () => { all.delete(hear); if (all.size === 0 && groups.get(group) === all) groups.delete(group); },
  };
}
export const steps_of_mode = (mode: string | null) => `steps of ${mode ?? "train"}`;
