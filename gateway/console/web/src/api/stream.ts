// Streams of what happens. Each page follows one, and hears from it when rights or names
// have changed or something was missed: then all that is shown may be out of date.

const listeners = new Set<() => void>();
const tell = () => listeners.forEach((listener) => listener());

/** How long to wait before a stream that was refused is asked for again. */
export const askAgainAfter = 60_000;

/** Calls listener when all that is shown may be out of date. */
export function onAskAgain(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Follows a stream, which comes back by itself when the connection ends, until the
 * returned function is called. One that is refused is asked for again after a while,
 * because its server may only be ending. One that says "lost" is left for a new one at once;
 * what is shown is asked for when that is open, so that nothing falls in between.
 * listen is called with each before anything comes. wasAway: the page was out of
 * sight, and followed nothing.
 */
export function followStream(address: string, wasAway: boolean, listen: (source: EventSource) => void): () => void {
  let source: EventSource;
  let isAway = wasAway;
  let askAgain: ReturnType<typeof setTimeout> | undefined;
  const open = () => {
    const own = new EventSource(address);
    source = own;
    own.addEventListener("lost", () => {
      own.close();
      isAway = true;
      open();
    });
    own.addEventListener("error", () => {
      isAway = true;
      if (own.readyState === own.CLOSED) {
        tell(); // it is refused, and does not come back by itself
        askAgain = setTimeout(open, askAgainAfter);
      }
    });
    own.addEventListener("open", () => {
      if (isAway) {
        isAway = false;
        tell();
      }
    });
    listen(own);
  };
  open();
  return () => {
    clearTimeout(askAgain);
    source.close();
  };
}
