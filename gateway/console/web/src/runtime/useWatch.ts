import { useEffect, useRef, useState } from "react";
import type { Instance } from "../api/runtime";
import type { Watched } from "../api/types";
import { watchAddress } from "../api/workflow";

/** How often to look when the stream cannot be had. */
const lookEvery = 15_000;
/** How long to wait before a stream that was refused is asked for again. */
const askAgainAfter = 60_000;

export interface WatchCalls {
  /** A new history entry, with the positions after it. */
  onEntry: (watched: Watched) => void;
  /** Something may have been missed: look again. */
  onLook: () => void;
}

/**
 * Follows an instance while the page is open, and returns whether it is told of
 * changes at once. An EventSource comes back by itself when the connection ends;
 * when it is refused, the page looks from time to time and asks again later.
 */
export function useWatch(instance: Instance | null, calls: WatchCalls): boolean {
  const [live, setLive] = useState(false);
  const latest = useRef(calls);
  useEffect(() => {
    latest.current = calls;
  });

  useEffect(() => {
    if (!instance) {
      return;
    }
    let source: EventSource | undefined;
    let askAgain: number | undefined;
    let wasOpen = false;
    const open = () => {
      source = new EventSource(watchAddress(instance));
      source.addEventListener("open", () => {
        setLive(true);
        if (wasOpen) {
          latest.current.onLook(); // entries may lie between two connections
        }
        wasOpen = true;
      });
      source.addEventListener("entry", (event: MessageEvent<string>) => {
        const watched = parseWatched(event.data);
        if (watched) {
          latest.current.onEntry(watched);
        }
      });
      source.addEventListener("lost", () => latest.current.onLook());
      source.addEventListener("error", () => {
        setLive(false);
        if (source?.readyState === EventSource.CLOSED) {
          askAgain = window.setTimeout(open, askAgainAfter);
        }
      });
    };
    open();
    const look = window.setInterval(() => {
      if (source?.readyState !== EventSource.OPEN && document.visibilityState === "visible") {
        latest.current.onLook();
      }
    }, lookEvery);
    // A page that goes away must not hold a watcher's place in the cache.
    const leave = () => source?.close();
    window.addEventListener("pagehide", leave);
    return () => {
      source?.close();
      window.clearTimeout(askAgain);
      window.clearInterval(look);
      window.removeEventListener("pagehide", leave);
    };
  }, [instance]);

  return live;
}

function parseWatched(text: string): Watched | undefined {
  try {
    return JSON.parse(text) as Watched;
  } catch {
    return undefined;
  }
}
