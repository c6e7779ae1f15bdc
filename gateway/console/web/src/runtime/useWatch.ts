import { useEffect, useRef, useState } from "react";
import type { Instance } from "../api/runtime";
import { followStream } from "../api/stream";
import type { Watched } from "../api/types";
import { watchAddress } from "../api/workflow";

/** How often to look when the stream cannot be had. */
const lookEvery = 15_000;

export interface WatchCalls {
  /** A new history entry, with the positions after it. */
  onEntry: (watched: Watched) => void;
  /** Something may have been missed: look again. */
  onLook: () => void;
}

/**
 * Follows an instance while its page is in sight, and returns whether it is told
 * of changes at once. An EventSource comes back by itself when the connection
 * ends; when it is refused, the page looks from time to time and asks again later.
 *
 * A page out of sight has no stream: a browser keeps only six connections to a
 * server that speaks HTTP/1.1, and six forms in six tabs would take them all.
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
    let leave = () => {};

    const close = () => {
      leave();
      source = undefined;
      setLive(false);
    };
    const open = (wasAway: boolean) => {
      close();
      leave = followStream(watchAddress(instance), wasAway, listen);
    };
    const listen = (own: EventSource) => {
      source = own;
      own.addEventListener("open", () => {
        setLive(true);
        // Entries may lie between what the page has loaded and the stream.
        latest.current.onLook();
      });
      own.addEventListener("entry", (event: MessageEvent<string>) => {
        const watched = parseWatched(event.data);
        if (watched) {
          latest.current.onEntry(watched);
        }
      });
      own.addEventListener("error", () => {
        setLive(false);
        if (own.readyState === EventSource.CLOSED) {
          latest.current.onLook(); // the caller may not read it any more, perhaps
        }
      });
    };
    const visible = () => document.visibilityState === "visible";
    const sightChanged = () => (visible() ? open(true) : close());

    if (visible()) {
      open(false);
    }
    const look = window.setInterval(() => {
      if (source?.readyState !== EventSource.OPEN && visible()) {
        latest.current.onLook();
      }
    }, lookEvery);
    document.addEventListener("visibilitychange", sightChanged);
    window.addEventListener("pagehide", close);
    return () => {
      document.removeEventListener("visibilitychange", sightChanged);
      window.removeEventListener("pagehide", close);
      window.clearInterval(look);
      close();
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
