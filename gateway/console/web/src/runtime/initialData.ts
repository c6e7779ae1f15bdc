import type { Fillable, JSONObject } from "../api/types";
import { findFaults } from "../schemaform/faults";
import { asObject } from "../schemaform/layout";
import { type Parted, parted } from "./misfits";

/**
 * A workflow often begins with stand-ins, such as 0 days. Those that the form
 * would not take are not shown, so that a field looks as empty as it is.
 */
function withoutMisfits(data: JSONObject, schema: JSONObject): JSONObject {
  try {
    const misfits = new Set(findFaults(schema, data).map((fault) => fault.path[0]));
    return Object.fromEntries(Object.entries(data).filter(([name]) => !misfits.has(name)));
  } catch {
    return data; // the form itself says what is wrong with the schema
  }
}

/**
 * What the form begins with: the draft, or else what the instance holds of the
 * fields that the form has. The rest of an instance is not the form's to send.
 */
export function initialData(view: Fillable): Parted {
  if (view.draft) {
    return parted(view.draft);
  }
  const items = view.template?.items;
  const known = items ? new Set(items.map((item) => item.id)) : new Set(Object.keys(asObject(view.template?.schema?.properties)));
  const data = Object.fromEntries(Object.entries(view.data).filter(([name]) => known.has(name)));
  return { fits: items || (view.submittedAt ?? 0) > 0 ? data : withoutMisfits(data, view.template?.schema ?? {}), words: [] };
}
