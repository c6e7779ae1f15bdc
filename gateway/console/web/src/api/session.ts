import { ask, ServiceError } from "./http";
import type { Caller } from "./types";

/** Who is signed in, null when nobody is. */
export async function loadCaller(): Promise<Caller | null> {
  try {
    return readCaller((await ask<unknown>("session")).value);
  } catch (fault) {
    if (fault instanceof ServiceError && fault.status === 401) {
      return null;
    }
    throw fault;
  }
}

function readCaller(value: unknown): Caller {
  const answer = value as { user?: unknown; name?: unknown; privileges?: unknown };
  const id = typeof answer.user === "string" ? answer.user : "";
  return {
    id,
    name: typeof answer.name === "string" && answer.name !== "" ? answer.name : id,
    privileges: Array.isArray(answer.privileges) ? answer.privileges.map(String) : [],
  };
}

export async function signOut(): Promise<void> {
  await ask("session", { method: "DELETE" });
}

/** The address of the sign-in page that leads back to where the person is. */
export function signInAddress(): string {
  const next = window.location.pathname + window.location.search;
  return `${new URL("login", document.baseURI).pathname}?next=${encodeURIComponent(next)}`;
}
