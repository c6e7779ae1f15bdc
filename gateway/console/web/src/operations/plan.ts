import type { components } from "../api/openapi";
import type { Plan } from "./api";

// Plans for moving instances (statemachine/DEFINITION.md, "Migration"). Pure.

type Status = components["schemas"]["Status"];

export interface Step {
  machine: string;
  from: string;
  label: string;
  /** Where it can go on: the states of the same machine. */
  to: Status[];
  /** "" when it must be chosen. */
  chosen: string;
}

/** For each place where an instance stands, where it goes on: where it was, when there is such a state. */
export function stepsOf(at: readonly Status[], nodes: readonly Status[], chosen: Readonly<Record<string, string>>): Step[] {
  return at.map((of) => {
    const to = nodes.filter((node) => node.stateMachineId === of.stateMachineId);
    const wanted = chosen[`${of.stateMachineId} ${of.nodeId}`] ?? of.nodeId;
    return { machine: of.stateMachineId, from: of.nodeId, label: of.label, to, chosen: to.some((node) => node.nodeId === wanted) ? wanted : "" };
  });
}

/** Whether instances there must be sent somewhere else, since the other version does not have their state. */
export const isLost = ({ from, to }: Step) => to.every(({ nodeId }) => nodeId !== from);

/** Null while a place has none to go to. */
export function planOf(from: number, to: number, steps: readonly Step[], timers: NonNullable<Plan["timers"]>): Plan | null {
  if (from === to || steps.some((step) => step.chosen === "")) {
    return null;
  }
  const nodes: Record<string, Record<string, string>> = {};
  for (const step of steps) {
    if (step.chosen !== step.from) {
      (nodes[step.machine] ??= {})[step.from] = step.chosen;
    }
  }
  return { from, to, timers, ...(Object.keys(nodes).length === 0 ? {} : { nodes }) };
}
