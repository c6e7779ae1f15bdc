import { read, write } from "../text";

// Saved views: names for queries of the address. They stay in this browser.

export interface View {
  name: string;
  /** The query of the address, without a place in the list. */
  query: string;
}

const viewsMax = 50;
const nameMax = 60;
const store = (user: string) => `troupe.views.${user}`;

/** What of the address is a view. */
const kept = ["filter", "sort", "col", "private"];

export function queryOfView(workflow: string, asked: URLSearchParams): string {
  const view = new URLSearchParams({ workflow });
  kept.forEach((name) => asked.getAll(name).forEach((value) => view.append(name, value)));
  return view.toString();
}

/** Reads what the browser's store holds, whatever somebody has put there. */
export function parseViews(text: string | null): View[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(list) ? list.filter(isView).slice(0, viewsMax) : [];
  } catch {
    return [];
  }
}

function isView(view: unknown): view is View {
  const { name, query } = (view ?? {}) as Partial<View>;
  return typeof name === "string" && typeof query === "string" && name.trim() !== "" && name.length <= nameMax;
}

/** With a view under a name, which it had before or not; in the order of their names. */
export function withView(views: readonly View[], name: string, query: string): View[] {
  const clean = name.trim().slice(0, nameMax);
  const others = views.filter((view) => view.name !== clean);
  return clean === "" ? [...views] : [...others, { name: clean, query }].toSorted((a, b) => a.name.localeCompare(b.name)).slice(0, viewsMax);
}

export const loadViews = (user: string) => parseViews(read(store(user)));
export const saveViews = (user: string, views: readonly View[]) => write(store(user), JSON.stringify(views));
