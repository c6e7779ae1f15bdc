// Where the sections of operations stand in the address. Pure.

export type Section = "attention" | "workflows" | "instances" | "tasks" | "incidents" | "jobs" | "outbox" | "timers" | "schedules" | "bulk" | "users" | "credentials" | "audit" | "backups" | "exports" | "health";

/** The address of a section, relative to the base path. */
export function pathOf(section: Section, query: Record<string, string> = {}): string {
  return `operations?${new URLSearchParams({ section, ...query })}`;
}

/** Where an operator looks after one instance. */
export const inspectPath = (workflow: string, instance: string) => pathOf("instances", { workflow, instance });
