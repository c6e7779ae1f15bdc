import type { Task } from "../api/tasks";
import type { Pending } from "../api/types";
import { wordsOf, type Words } from "../instance/definitionWords";
import { formatNumber, readable } from "../words";
import type { Incident, PublishedWorkflow } from "./api";
import type { Translate } from "./text";

// What workflows and failures are called, and what ends with an instance. Pure.

export const nameOfWorkflow = (of: Pick<PublishedWorkflow, "id" | "name">) => (of.name === "" ? readable(of.id) : of.name);

/** The name of an event, as people say it. */
export function eventName(event: string, t: Translate, words = wordsOf(undefined)): string {
  if (event === "") {
    return t("incidents.create");
  }
  const [, ended, place] = /^(done|error)\.invoke\.(.+)$/.exec(event) ?? [];
  if (place !== undefined) {
    return t(ended === "done" ? "incidents.result" : "incidents.failure", { state: words.node(place) });
  }
  const [, time, state] = /^after\.(P[^.]+)\.(.+)$/.exec(event) ?? [];
  return time !== undefined && state !== undefined ? t("incidents.timer", { state: words.node(state), time: waitText(time) }) : words.event(event);
}

/** "P2DT3H" as "2 d 3 h": short, and the same in both languages. */
function waitText(time: string): string {
  const units: Record<string, string> = { Y: "y", W: "w", D: "d", H: "h", S: "s" };
  const [days = "", hours = ""] = time.slice(1).split("T");
  const parts = [...days.matchAll(/([\d.]+)([YMWD])/g)].map(([, n, unit]) => `${n} ${unit === "M" ? "mo" : units[unit ?? ""]}`);
  parts.push(...[...hours.matchAll(/([\d.]+)([HMS])/g)].map(([, n, unit]) => `${n} ${unit === "M" ? "min" : units[unit ?? ""]}`));
  return parts.length === 0 ? time : parts.join(" ");
}

export type Named = Pick<Incident, "event"> & Partial<Pick<Incident, "kind">>;

/** What an incident is called: what does not end has a name of its own, the others that of their event. */
export const incidentName = ({ event, kind }: Named, t: Translate, words?: Words) => (kind === "loop" || kind === "tree" ? t(`incidents.kinds.${kind}`) : eventName(event, t, words));

/** How often something has failed, and for whom, where anybody was told. */
export function timesText({ count = 1, user = "" }: Pick<Incident, "count" | "user">, t: Translate): string {
  const number = formatNumber(count);
  return user === "" ? t("incidents.unnamed", { count, number }) : t("incidents.times", { count, number, user });
}

/** Who may take a task. */
export const candidatesText = ({ candidates }: Task, t: Translate) => [...candidates.roles.map(readable), ...candidates.users, ...candidates.privileges].join(", ") || t("tasks.readers");

export type Child = Pending["children"][number];

/** "Order is cancelled, and with it 3 running child instances (2 × Check, 1 × Delivery) …" */
export function whatEnds(name: string, running: readonly Child[], t: Translate): string {
  const counts = new Map<string, number>();
  for (const { workflowId } of running) {
    counts.set(workflowId, (counts.get(workflowId) ?? 0) + 1);
  }
  const children = [...counts].map(([id, count]) => `${formatNumber(count)} × ${readable(id)}`).join(", ");
  return running.length === 0 ? t("inspect.stopUnseen", { name }) : t("inspect.stopText", { count: running.length, number: formatNumber(running.length), name, children });
}
