// What is different between two documents. Pure.

export interface Change {
  /** The names that lead there; entries of lists count from 1. */
  path: string[];
  /** Undefined: it was not there. */
  before: unknown;
  /** Undefined: it is not there. */
  after: unknown;
}

const isGroup = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === "object";

const namesOf = (value: Record<string, unknown>) => Object.keys(value);

/** The changed values, in the order in which they stand, each as far inside as both documents have the same shape. */
export function changesOf(before: unknown, after: unknown, path: string[] = []): Change[] {
  if (!isGroup(before) || !isGroup(after) || Array.isArray(before) !== Array.isArray(after)) {
    return Object.is(before, after) ? [] : [{ path, before, after }];
  }
  const isList = Array.isArray(after);
  const names = [...new Set([...namesOf(after), ...namesOf(before)])];
  return names.flatMap((name) => changesOf(own(before, name), own(after, name), [...path, isList ? String(Number(name) + 1) : name]));
}

/** NB: a document may have a member that each object inherits, such as "constructor". */
const own = (value: Record<string, unknown>, name: string) => (Object.hasOwn(value, name) ? value[name] : undefined);
