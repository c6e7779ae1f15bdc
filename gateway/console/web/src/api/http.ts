// How the service refuses, and the keys under which a request is repeated.
import { language, t } from "../text";

/** A refusal of the service, or no answer at all (status 0). */
export class ServiceError extends Error {
  readonly status: number;
  /** What the service said, in English whatever the language is; "" when it said nothing. */
  readonly reason: string;

  constructor(status: number, message: string, reason = "") {
    super(message);
    this.name = "ServiceError";
    this.status = status;
    this.reason = reason;
  }

  /** The same request may succeed later. Whether this one was carried out is another question. */
  get temporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503 || this.status === 504;
  }

  /**
   * The request may have been carried out: the answer was lost, or does not say.
   * NB: the service's own 503 says that nothing was done, that of a proxy does not.
   */
  get outcomeUnknown(): boolean {
    return this.status === 0 || this.status >= 500;
  }

  /**
   * The service has refused the request for good. NB: 401 and 429 come before it
   * is looked at, and say nothing about an earlier one with the same key.
   */
  get final(): boolean {
    return this.status >= 400 && this.status < 500 && ![401, 408, 429].includes(this.status);
  }
}

/** Whether the caller may not see something, or it is gone. */
export const isRefusal = (fault: unknown) => fault instanceof ServiceError && (fault.status === 403 || fault.status === 404);

/** What the service's refusal says. */
export async function refusalOf(response: Response): Promise<ServiceError> {
  if (response.status === 401) {
    signedOutListeners.forEach((listener) => listener());
  }
  // The service's own words for it are about tokens and sessions.
  const reason = await reasonOf(response);
  return new ServiceError(response.status, response.status === 401 ? t("fault.signedOut") : messageOf(response.status, reason), reason ?? "");
}

/** Undefined for an answer that is not the service's: a proxy in front answers in its own words. */
async function reasonOf(response: Response): Promise<string | undefined> {
  try {
    const fault = (await response.json()) as { message?: unknown };
    return typeof fault.message === "string" ? fault.message : "";
  } catch {
    return undefined;
  }
}

/** The service speaks English; in another language its status must do. */
function messageOf(status: number, reason: string | undefined): string {
  if (language() === "en" && reason) {
    return sentence(reason);
  }
  const key = byStatus[status];
  return key !== undefined && language() !== "en" && reason !== undefined ? t(key) : t("fault.status", { status });
}

const byStatus: Record<number, "fault.refused" | "fault.forbidden" | "fault.notFound" | "fault.changed" | "fault.large" | "fault.busy"> = {
  400: "fault.refused",
  403: "fault.forbidden",
  404: "fault.notFound",
  409: "fault.changed",
  412: "fault.changed",
  413: "fault.large",
  422: "fault.refused",
  429: "fault.busy",
  503: "fault.busy",
};

/** The service's messages begin small and end without a full stop. */
function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

const signedOutListeners = new Set<() => void>();

/** Calls listener whenever the service does not know the session any more. */
export function onSignedOut(listener: () => void): () => void {
  signedOutListeners.add(listener);
  return () => signedOutListeners.delete(listener);
}

/** What to tell a person about anything that was thrown. */
export function messageFor(fault: unknown): string {
  return fault instanceof Error && fault.message !== "" ? fault.message : t("fault.unknown");
}

/**
 * A key under which a request can be repeated safely. NB: crypto.randomUUID is
 * missing on pages that did not come over HTTPS; random numbers are not.
 */
export function randomKey(): string {
  if (typeof crypto.randomUUID === "function") {
    return crypto.randomUUID();
  }
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The keys of requests that are not answered for good: the same request goes out
 * under the same key, so that a second click or a lost answer does it once.
 */
export class RetryKeys {
  readonly #keys = new Map<string, string>();

  /** Does work, a request which its text tells from others, under its key. */
  async once<T>(text: string, work: (key: string) => Promise<T>): Promise<T> {
    const key = this.#keys.get(text) ?? randomKey();
    this.#keys.set(text, key);
    try {
      const answer = await work(key);
      this.#keys.delete(text);
      return answer;
    } catch (fault) {
      if (fault instanceof ServiceError && fault.final) {
        this.#keys.delete(text);
      }
      throw fault;
    }
  }
}
