import { client, tagged, value } from "./client";
import type { RetryKeys } from "./http";
import type { Instance } from "./runtime";
import type { Activity } from "./tasks";
import type { JSONObject } from "./types";

// What an instance was after each entry of its history, and its way back there. Entries count from 1.

/** The number of the last entry, which is the entity tag of an instance; 0 when it is not known. */
export const lastEntry = (tag: string | undefined): number => Number(/^"([1-9]\d*)(-gzip)?"$/.exec(tag ?? "")?.[1] ?? 0);

export interface Documents {
  public: JSONObject;
  private: JSONObject;
}

/** What an instance held after an entry. A ServiceError with status 409: that was not kept. */
export async function loadDocuments(of: Instance, at: number, signal?: AbortSignal): Promise<Documents> {
  const { state } = await value(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}", { params: { path: of, query: { at } }, signal, headers: { Prefer: "return=minimal" } }));
  return { public: state.svcPublic, private: state.svcPrivate };
}

/** Two entries of a history and those between them, with the names of users. */
export async function loadEntries(of: Instance, first: number, last: number, signal?: AbortSignal): Promise<Activity[]> {
  const entries: Activity[] = [];
  for (let cursor: string | null = ""; cursor !== null && (entries.at(-1)?.sequence ?? 0) < last; ) {
    const query = { order: "asc" as const, from: first, cursor };
    const page: { activity: Activity[]; next: string | null } = await value(client.GET("/workflow/api/v1/instance/{workflowId}/{instanceId}/activity", { params: { path: of, query }, signal }));
    entries.push(...page.activity.filter(({ kind, sequence = 0 }) => kind === "history" && sequence <= last));
    cursor = page.next;
  }
  return entries;
}

/**
 * Makes an instance what it was after an entry, if the tag is still its own: another one is a ServiceError with status
 * 412. Sent again with the same keys after a lost answer, it happens once. Returns the number of the new entry.
 */
export function resetTo(of: Instance, to: number, reason: string, tag: string, keys: RetryKeys): Promise<number> {
  const body = { to, reason };
  return keys.once(JSON.stringify([of, body]), async (key) => {
    const headers = { "Idempotency-Key": key, "If-Match": tag, Prefer: "return=minimal" };
    return lastEntry((await tagged(client.POST("/workflow/api/v1/instance/{workflowId}/{instanceId}/reset", { params: { path: of }, body, headers }))).tag);
  });
}
