import { useEffect, useMemo, useState } from "react";
import { type Instance, saveDraft } from "../api/runtime";
import { DraftSaver, type DraftStatus } from "./draftSaver";

export interface DraftControl {
  status: DraftStatus;
  saver: DraftSaver;
}

/** Keeps a draft saved while the form is on the page, and when it goes away. */
export function useDraft(instance: Instance, revision: number, savedAt: number): DraftControl {
  const [status, setStatus] = useState<DraftStatus>(savedAt > 0 ? { state: "saved", savedAt } : { state: "idle" });
  const saver = useMemo(
    () =>
      new DraftSaver(
        {
          save: (data, over, keepalive) => saveDraft(instance, data, over, keepalive),
          tell: setStatus,
          later: (milliseconds, callback) => {
            const timer = window.setTimeout(callback, milliseconds);
            return () => window.clearTimeout(timer);
          },
        },
        revision,
      ),
    [instance, revision],
  );

  useEffect(() => {
    const leave = () => saver.leave();
    // A phone may never say that a page goes away, only that it is out of sight.
    const hide = () => document.visibilityState === "hidden" && saver.flush();
    window.addEventListener("pagehide", leave);
    const online = () => saver.flush();
    window.addEventListener("online", online);
    document.addEventListener("visibilitychange", hide);
    return () => {
      window.removeEventListener("pagehide", leave);
      window.removeEventListener("online", online);
      document.removeEventListener("visibilitychange", hide);
      saver.leave();
    };
  }, [saver]);

  return { status, saver };
}
