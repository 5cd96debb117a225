// What is in the page only while it is near the window: its place is kept.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const NEAR = "200px";

// `always`: it is in the page wherever it is.
export function Near({ height, always, children }: { height: number; always: boolean; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const tall = useRef(height);
  const [near, set_near] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((all) => {
      const one = all[all.length - 1]!;
      if (!one.isIntersecting && one.boundingClientRect.height > 0) tall.current = one.boundingClientRect.height;
      // Who works with a key in it keeps it.
      set_near(one.isIntersecting || box.current!.contains(document.activeElement));
    }, { rootMargin: NEAR });
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  return <div ref={box} class="near" style={near || always ? {} : { height: `${tall.current}px` }}>{(near || always) && children}</div>;
}
