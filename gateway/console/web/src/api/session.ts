import { ask, ServiceError } from "./http";
import type { Caller, SignedIn } from "./types";

/** Who is signed in, null when nobody is. */
export async function loadCaller(): Promise<Caller | null> {
  try {
    return callerOf((await ask<SignedIn>("session")).value);
  } catch (fault) {
    if (fault instanceof ServiceError && fault.status === 401) {
      return null;
    }
    throw fault;
  }
}

function callerOf({ user, name, privileges }: SignedIn): Caller {
  return { id: user, name: name === "" ? user : name, privileges };
}

export async function signOut(): Promise<void> {
  await ask("session", { method: "DELETE" });
}

/** The address of the sign-in page that leads back to where the person is. */
export function signInAddress(): string {
  const next = window.location.pathname + window.location.search;
  return `${new URL("login", document.baseURI).pathname}?next=${encodeURIComponent(next)}`;
}
