// What is begun and not sent yet, in the store of the browser's tab. It outlives a
// reload, and ends with the tab.
//
// NB: a browser may refuse its store; the text then lives as long as the page.

/** What was kept under a name, empty when nothing was. */
export function kept(name: string): string {
  try {
    return window.sessionStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Keeps a text under a name; an empty one is forgotten. */
export function keep(name: string, text: string): void {
  try {
    if (text === "") {
      window.sessionStorage.removeItem(name);
    } else {
      window.sessionStorage.setItem(name, text);
    }
  } catch {
    // The page itself still has it.
  }
}

/** An object that was kept; undefined when there is none. */
export function keptObject(name: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(kept(name));
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
