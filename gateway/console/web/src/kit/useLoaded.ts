import { useCallback, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { isRefusal } from "../api/http";

/** What was asked for: not yet here, here, or refused. */
export type Loaded<T> = { state: "loading" } | { state: "ready"; value: T } | { state: "failed"; fault: unknown };

export interface Loading<T> {
  loaded: Loaded<T>;
  /** Asks anew; what is shown stays until the answer is here. */
  reload: () => void;
  /** Puts something in place of what was loaded. */
  replace: (value: T) => void;
}

interface LoadedOptions<T> {
  /** It is the same in each language. */
  isSame?: boolean;
  /** It stays on the page when the caller may not see it any more. */
  stays?: (value: T) => boolean;
}

const always = () => true;

/**
 * Loads when the component appears, when load changes, on reload, and in another
 * language when the person chooses one. Only the last request counts; the ones
 * before are given up.
 */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, { isSame = false, stays = always }: LoadedOptions<T> = {}): Loading<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  const running = useRef<AbortController | null>(null);
  const latest = useRef(stays);
  useEffect(() => {
    latest.current = stays;
  });

  const start = useCallback(() => {
    running.current?.abort();
    const own = new AbortController();
    running.current = own;
    load(own.signal).then(
      (value) => own.signal.aborted || setLoaded({ state: "ready", value }),
      (fault: unknown) => {
        if (!own.signal.aborted) {
          // What is on the page is more useful than a passing fault.
          setLoaded((before) => (before.state === "ready" && (!isRefusal(fault) || latest.current(before.value)) ? before : { state: "failed", fault }));
        }
      },
    );
  }, [load]);

  useEffect(() => {
    setLoaded({ state: "loading" });
    start();
    return () => running.current?.abort();
  }, [start]);

  const { i18n } = useTranslation();
  const spoken = useRef(i18n.language);
  useEffect(() => {
    if (spoken.current !== i18n.language) {
      spoken.current = i18n.language;
      if (!isSame) {
        start();
      }
    }
  }, [i18n.language, isSame, start]);

  const reload = useCallback(() => {
    setLoaded((before) => (before.state === "failed" ? { state: "loading" } : before));
    start();
  }, [start]);

  const replace = useCallback((value: T) => {
    running.current?.abort();
    setLoaded({ state: "ready", value });
  }, []);

  return { loaded, reload, replace };
}
