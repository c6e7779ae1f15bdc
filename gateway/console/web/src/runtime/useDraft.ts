import { useEffect, useMemo, useRef, useState } from "react";
import { type Instance, loadForm, saveDraft } from "../api/runtime";
import { DraftSaver, type DraftStatus } from "./draftSaver";

export interface DraftControl {
  status: DraftStatus;
  saver: DraftSaver;
}

/** Keeps a draft saved while the form is on the page, and when it goes away. */
export function useDraft(instance: Instance, revision: number, savedAt: number): DraftControl {
  const [status, setStatus] = useState<DraftStatus>(savedAt > 0 ? { state: "saved", savedAt } : { state: "idle" });
  // The form may be looked at again while it is filled in, and then has the
  // revision that this page's own saver gave it: the saver knows better.
  const [first] = useState(revision);
  const saver = useMemo(
    () =>
      new DraftSaver(
        {
          save: (data, over, keepalive) => saveDraft(instance, data, over, keepalive),
          stored: async () => (await loadForm(instance)).draft,
          tell: setStatus,
          later: (milliseconds, callback) => {
            const timer = window.setTimeout(callback, milliseconds);
            return () => window.clearTimeout(timer);
          },
        },
        first,
      ),
    [instance, first],
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
