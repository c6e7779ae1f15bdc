import type { Activity } from "../api/tasks";
import type { Pending, Presentation } from "../api/types";
import { asObject } from "../schemaform/layout";
import { t } from "../text";
import { formatNumber, readable } from "../words";

type Job = Pending["jobs"][number];
type Timer = Pending["timers"][number];

/** What people call nodes and events: as the definition does, else the names made readable. */
export interface Words {
  machine: (stateMachineId: string) => string;
  node: (nodeId: string) => string;
  event: (name: string) => string;
  /** What somebody has done who sent the event, such as "approved it"; empty when the definition does not say. */
  done: (name: string) => string;
}

/** What a timer of a node sends, with the node's name (statemachine/DEFINITION.md, "Timers"). */
const timerEvent = /^after\.[^.]+\.(.+)$/;

/** A label, or an id made readable. */
const named = (label: string | undefined, id: string) => (label === undefined || label === id ? readable(id) : label);

/** The user of what the service itself sends. */
const system = "system";

/** The event with which an instance is cancelled: by its parent, or by who stops it. */
const cancelling = "parent.cancelled";

/** The event with which an instance becomes what it was after an earlier entry. */
const resetting = "reset";

/** The entry that a reset went back to, of what it brought: an event of a definition may have the same name. */
export function resetEntry(data: unknown): number | undefined {
  const { to, reason } = asObject(data);
  return typeof to === "number" && typeof reason === "string" ? to : undefined;
}

/** How a history entry is worded. What nothing took is an attempt: its user did not do what the event is for. */
export function wordingOf(entry: Pick<Activity, "user" | "transitionEvent" | "attempt" | "data">, words: Words): "created" | "cancelled" | "reset" | "attempt" | "done" | "event" {
  const event = entry.transitionEvent ?? "";
  if (event === "") {
    return "created";
  }
  if (event === cancelling) {
    return "cancelled";
  }
  if (event === resetting && resetEntry(entry.data) !== undefined) {
    return "reset";
  }
  if (entry.attempt && entry.user !== system) {
    return "attempt";
  }
  return words.done(event) === "" ? "event" : "done";
}

/** What a timer will do, and what it is for when nobody knows. */
export function timerWords(timer: Timer, words: Words): string {
  if (timer.targetId !== undefined) {
    return t("instance.timers.moves", { node: words.node(timer.targetId) });
  }
  if (timer.sends?.includes("mail")) {
    return t("instance.timers.mails");
  }
  if (timer.sends?.includes("webhook")) {
    return t("instance.timers.calls");
  }
  return t("instance.timers.other", { name: timer.nodeId ? words.node(timer.nodeId) : readable(timer.event) });
}

/** Where a job is, and at which attempt. */
export function jobWords({ state, attempts, worker }: Pick<Job, "state" | "attempts" | "worker">): string {
  const values = { attempt: formatNumber(state === "waiting" ? attempts + 1 : attempts), worker: worker ?? "" };
  return t(`instance.jobs.${state === "waiting" && attempts > 0 ? "again" : state}`, values);
}

export function wordsOf(workflow: Presentation | undefined): Words {
  const event = (name: string) => workflow?.events.find((each) => each.name === name);
  const node = (id: string) => [...(workflow?.nodes ?? []), ...(workflow?.compounds ?? [])].find((each) => each.nodeId === id)?.label ?? readable(id);
  return {
    machine: (id) => named(workflow?.stateMachines.find((machine) => machine.stateMachineId === id)?.label, id),
    node,
    event: (name) => {
      const [, waited] = timerEvent.exec(name) ?? [];
      return event(name)?.label ?? (waited === undefined ? readable(name) : t("history.timer", { node: node(waited) }));
    },
    done: (name) => event(name)?.done ?? "",
  };
}
