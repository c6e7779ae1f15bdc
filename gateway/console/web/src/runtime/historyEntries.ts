import type { HistoryEntry, Presentation } from "../api/types";
import { readable } from "../words";

// What a history says to people. Pure.

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

/** What people call nodes, events and machines: as the definition does, else the names made readable. */
export interface Words {
  node: (nodeId: string, machine?: string) => string;
  event: (name: string) => string;
  machine: (id: string) => string;
}

export function wordsOf(workflow: Presentation | undefined): Words {
  const nodes = workflow?.nodes ?? [];
  return {
    node: (id, machine) => (nodes.find((node) => node.nodeId === id && node.stateMachineId === machine) ?? nodes.find((node) => node.nodeId === id))?.label ?? readable(id),
    event: (name) => workflow?.events.find((event) => event.name === name)?.label ?? readable(name),
    machine: readable,
  };
}
