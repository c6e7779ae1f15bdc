import type { HistoryEntry, Watched } from "../api/types";
import type { History } from "../api/workflow";

// What a stream adds to a history that was loaded before. Pure.

/**
 * The history with one more entry; "known" when it is in there already, "gap"
 * when others are missing before it, or when it lies behind what is read.
 */
export function withEntry(history: History, watched: Watched): History | "known" | "gap" {
  const length = history.entries.length;
  if (watched.sequence <= length) {
    return "known";
  }
  if (history.cut || watched.sequence > length + 1) {
    return "gap";
  }
  return { entries: [...history.entries, watched.entry], cut: false };
}

/** What one state machine did in an entry. */
export interface Move {
  /** Its place among the machines. */
  machine: number;
  from: string;
  to: string;
}

/** The machines that an entry moved; for the first entry, all of them. */
export function movesOf(entry: HistoryEntry): Move[] {
  const moves: Move[] = [];
  entry.endState.forEach((to, machine) => {
    const from = entry.startState[machine] ?? "";
    if (from !== to) {
      moves.push({ machine, from, to });
    }
  });
  return moves;
}
