// What is asked for and drawn only once it comes near the window.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const NEAR = "200px";

export function Seen({ height, children }: { height: number; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [seen, set_seen] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((all) => {
      if (!all.some((one) => one.isIntersecting)) return;
      watch.disconnect();
      set_seen(true);
    }, { rootMargin: NEAR });
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  return <div ref={box} style={seen ? {} : { minHeight: `${height}px` }}>{seen && children}</div>;
}
