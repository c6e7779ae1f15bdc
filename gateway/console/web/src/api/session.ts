import { client, value } from "./client";
import { ServiceError } from "./http";
import type { Caller, SignedIn } from "./types";

let early: Promise<Caller | null> | undefined;

/** Asks who is signed in before anything is drawn; the first loadCaller has the answer. */
export function askEarly(): void {
  early = askCaller();
  early.catch(() => {}); // who loads it is told
}

/** Who is signed in, null when nobody is. */
export function loadCaller(): Promise<Caller | null> {
  const answer = early ?? askCaller();
  early = undefined;
  return answer;
}

async function askCaller(): Promise<Caller | null> {
  try {
    return callerOf(await value(client.GET("/session")));
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
  await value(client.DELETE("/session"));
}

/** The address of the sign-in page that leads back to where the person is. */
export function signInAddress(): string {
  const next = window.location.pathname + window.location.search;
  return `${new URL("login", document.baseURI).pathname}?next=${encodeURIComponent(next)}`;
}
