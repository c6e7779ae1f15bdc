import { useEffect, useMemo, useRef, useState } from "react";
import type { Draft, JSONObject, Saved } from "../api/types";
import { keep } from "../kit/kept";
import { DraftSaver, type DraftStatus } from "./draftSaver";

export interface DraftControl {
  status: DraftStatus;
  saver: DraftSaver;
}

/** Where a draft is kept. */
export interface DraftStore {
  save: (data: JSONObject, digest: string | undefined, over: number | null, keepalive: boolean) => Promise<Saved>;
  stored: () => Promise<Draft | null>;
}

interface Kept {
  revision: number;
  savedAt: number;
}

/** For which template what is saved is written. It can change while the form is filled in. */
export class WrittenFor {
  #digest: string | undefined;

  constructor(digest: string | undefined) {
    this.#digest = digest;
  }

  get digest(): string | undefined {
    return this.#digest;
  }

  /** From now on it is written for another one. */
  turnTo(digest: string | undefined): void {
    this.#digest = digest;
  }
}

/**
 * Keeps a draft saved while the form is on the page, and when it goes away. What the
 * tab's store has under the name of store is forgotten when the service has it.
 */
export function useDraft(drafts: DraftStore, kept: Kept | null, written: WrittenFor, store: string): DraftControl {
  const [status, setStatus] = useState<DraftStatus>(kept ? { state: "saved", savedAt: kept.savedAt } : { state: "idle" });
  // The form may be looked at again while it is filled in, and then has the
  // revision that this page's own saver gave it: the saver knows better.
  const [first] = useState(kept?.revision ?? 0);
  const saver = useMemo(
    () =>
      new DraftSaver(
        {
          save: async (data, over, keepalive) => {
            const saved = await drafts.save(data, written.digest, over, keepalive);
            keep(store, "");
            return saved;
          },
          stored: drafts.stored,
          tell: setStatus,
          later: (milliseconds, callback) => {
            const timer = window.setTimeout(callback, milliseconds);
            return () => window.clearTimeout(timer);
          },
        },
        first,
      ),
    [drafts, first, written, store],
  );

  const stuck = useRef(false);
  useEffect(() => {
    stuck.current = status.state === "failed" || status.state === "conflict";
  }, [status]);

  useEffect(() => {
    const leave = () => saver.leave(true);
    // A phone may never say that a page goes away, only that it is out of sight.
    const hide = () => document.visibilityState === "hidden" && saver.flush();
    // Only when saving does not work is there a reason to ask before leaving.
    const ask = (event: BeforeUnloadEvent) => stuck.current && saver.hasUnsaved && event.preventDefault();
    window.addEventListener("beforeunload", ask);
    window.addEventListener("pagehide", leave);
    const online = () => saver.flush();
    window.addEventListener("online", online);
    document.addEventListener("visibilitychange", hide);
    return () => {
      window.removeEventListener("beforeunload", ask);
      window.removeEventListener("pagehide", leave);
      window.removeEventListener("online", online);
      document.removeEventListener("visibilitychange", hide);
      saver.leave(false);
    };
  }, [saver]);

  return { status, saver };
}
