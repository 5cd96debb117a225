// Where the page is: its real address, which is the whole state of the view.
import { signal } from "@preact/signals";

const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search) });
export const place = signal(here());

export function go(to: string): void {
  history.pushState(null, "", to);
  place.value = here();
  window.scrollTo(0, 0);
}

export const set_query = (name: string, value: string) => set_queries({ [name]: value });

export function set_queries(values: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value); else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
  place.value = here();
}

window.addEventListener("popstate", () => { place.value = here(); });
