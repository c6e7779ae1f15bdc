import { type AnchorHTMLAttributes, type MouseEvent, useCallback, useMemo, useSyncExternalStore } from "react";
import { randomKey } from "./api/http";

// The address bar is the only memory of which page is shown. Paths here are
// relative to the base path, with their query: "" or "?show=submitted".

const changed = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  changed.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    changed.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

/** The path that every other one hangs below, ending in a slash. */
export const basePath = () => new URL(document.baseURI).pathname;

/** The present path with its query, as the server sees it. */
export const useAddress = () => useSyncExternalStore(subscribe, () => window.location.pathname + window.location.search);

export function go(path: string, how: "push" | "replace" = "push"): void {
  const url = new URL(path === "" ? "./" : path, document.baseURI);
  // NB: "?x" alone would be resolved against the document, which is <base>: good.
  window.history[how === "push" ? "pushState" : "replaceState"](null, "", url);
  changed.forEach((listener) => listener());
}

/**
 * The key of this entry of the browser's history, drawn when it is first asked for.
 * It outlives a reload, and the changes of address that settle makes; a link to the
 * same address has another one.
 */
export function entryKey(): string {
  const known = knownEntryKey();
  if (known !== undefined) {
    return known;
  }
  const key = randomKey();
  window.history.replaceState({ key }, "", window.location.href);
  return key;
}

/** The key of this entry, if one was drawn. */
export function knownEntryKey(): string | undefined {
  const state = window.history.state as { key?: unknown } | null;
  return typeof state?.key === "string" ? state.key : undefined;
}

/** What is shown has another address from now on; the page stays as it is. */
export function settle(path: string): void {
  window.history.replaceState(window.history.state, "", new URL(path, document.baseURI));
  changed.forEach((listener) => listener());
}

/** The query of the address, and a way to change some of it. An empty value takes a name out. */
export function useQueryPart(): [URLSearchParams, (changes: Record<string, string | string[]>, how?: "push" | "replace") => void] {
  const address = useAddress();
  const asked = useMemo(() => new URL(address, window.location.href).searchParams, [address]);
  const change = useCallback((changes: Record<string, string | string[]>, how: "push" | "replace" = "push") => {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(changes)) {
      url.searchParams.delete(name);
      [value].flat().filter((each) => each !== "").forEach((each) => url.searchParams.append(name, each));
    }
    const path = url.pathname + url.search;
    if (path !== window.location.pathname + window.location.search) {
      window.history[how === "push" ? "pushState" : "replaceState"](null, "", path);
      changed.forEach((listener) => listener());
    }
  }, []);
  return [asked, change];
}

interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  to: string;
}

/** A link inside of the pages. Other buttons and keys open it as any link. */
export function Link({ to, onClick, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
      return;
    }
    event.preventDefault();
    go(to);
  };
  return (
    <a {...rest} href={to === "" ? "./" : to} onClick={follow}>
      {children}
    </a>
  );
}
