import type { Draft, JSONObject, Misfit } from "../api/types";
import { titlesAt } from "../schemaform/titles";

// A draft whose template has changed: what still fits goes into the form, the rest
// is shown beside it in the person's words. Both are kept in the draft until the
// person says that the words are not needed any more. Pure.

/** Something that was typed and has no place in the form any more. */
export interface Word {
  path: string[];
  reason: Misfit["reason"];
  value: unknown;
}

export interface Parted {
  /** What the form can show. */
  fits: JSONObject;
  words: Word[];
}

/** The digest of no template: a draft that is saved under it is compared with the template of now. */
export const otherTemplate = "00000000000000000000000000000001";

/** A draft as the form shows it. */
export function parted(draft: Draft): Parted {
  const fits = structuredClone(draft.data);
  const words: Word[] = [];
  if (draft.templateChanged) {
    // NB: from the end, so that entries of a list that go do not move others.
    for (const { path, reason } of (draft.misfits ?? []).toSorted((a, b) => order(b.path, a.path))) {
      const names = pointer(path);
      const value = cut(fits, names);
      if (value !== undefined) {
        words.unshift({ path: names, reason, value });
      }
    }
  }
  return { fits, words };
}

/**
 * The draft to keep: what is in the form, and the words. One whose place is taken, or
 * lies in a list whose entries may have moved, becomes a member of its own.
 */
export function joined(fits: JSONObject, words: Word[], schema: JSONObject): JSONObject {
  const whole = structuredClone(fits);
  for (const { path, value } of words) {
    if (!put(whole, path, value)) {
      let name = titlesAt(schema, path).join(", ");
      while (name in whole) {
        name += " *";
      }
      whole[name] = value;
    }
  }
  return whole;
}

const pointer = (text: string) => text.split("/").slice(1).map((part) => part.replace(/~1/g, "/").replace(/~0/g, "~"));

const order = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });

/** Takes out what stands at a place. An entry of a list leaves no hole. */
function cut(whole: JSONObject, path: string[]): unknown {
  const name = path.at(-1);
  let at: unknown = whole;
  for (const step of path.slice(0, -1)) {
    at = inside(at, step);
  }
  if (name === undefined || inside(at, name) === undefined) {
    return undefined;
  }
  if (Array.isArray(at)) {
    return at.splice(Number(name), 1)[0];
  }
  const value = (at as JSONObject)[name];
  delete (at as JSONObject)[name];
  return value;
}

function inside(at: unknown, name: string): unknown {
  if (Array.isArray(at)) {
    return at[Number(name)];
  }
  return at !== null && typeof at === "object" && Object.hasOwn(at, name) ? (at as JSONObject)[name] : undefined;
}

/** Reports whether the place was free, and is taken now. */
function put(whole: JSONObject, path: string[], value: unknown): boolean {
  const name = path.at(-1);
  let at = whole;
  for (const step of path.slice(0, -1)) {
    const next = at[step] ?? {};
    if (typeof next !== "object" || Array.isArray(next)) {
      return false;
    }
    at[step] = next;
    at = next as JSONObject;
  }
  // NB: a name such as __proto__ is no member to be set.
  if (name === undefined || name in at) {
    return false;
  }
  at[name] = value;
  return true;
}
