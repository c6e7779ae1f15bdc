// The client of the service: its paths, parameters and answers are generated from gateway/openapi.yaml.
import createClient from "openapi-fetch";
import { language, t } from "../text";
import { refusalOf, ServiceError } from "./http";
import type { paths } from "./openapi";

export const client = createClient<paths>({
  // Paths begin at the base path of the service, which <base> says. Tests have no document.
  baseUrl: typeof document === "object" ? document.baseURI : "about:",
  fetch: (request) => fetch(request),
  headers: { Accept: "application/json" },
  credentials: "same-origin",
  cache: "no-store",
  // What is empty is left out: no parameter of the service may be empty.
  querySerializer: (query) => new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, String(value)]]))).toString(),
});

client.use({
  onRequest: ({ request }) => request.headers.set("Accept-Language", language()),
  onResponse: async ({ response }) => {
    if (!response.ok) {
      throw await refusalOf(response);
    }
  },
  onError: ({ request }) => (request.signal.aborted ? undefined : new ServiceError(0, t("fault.unreachable"))),
});

export interface Answer<T> {
  value: T;
  /** The entity tag, empty when there is none. */
  tag: string;
}

/** An answer with its tag. Throws ServiceError, also where the answer breaks off. */
export async function tagged<T>(asked: Promise<{ data?: T; response: Response }>): Promise<Answer<T>> {
  try {
    const { data, response } = await asked;
    if (data !== undefined) {
      return { value: data, tag: response.headers.get("ETag") ?? "" };
    }
  } catch (fault) {
    if (fault instanceof ServiceError || (fault instanceof Error && fault.name === "AbortError")) {
      throw fault;
    }
  }
  throw new ServiceError(0, t("fault.unreadable"));
}

/** What the service answered. Throws as tagged does. */
export const value = async <T>(asked: Promise<{ data?: T; response: Response }>): Promise<T> => (await tagged(asked)).value;
