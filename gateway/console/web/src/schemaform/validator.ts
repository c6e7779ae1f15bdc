import { ErrorSchemaBuilder, type RJSFSchema, type RJSFValidationError, type ValidationData, type ValidatorType } from "@rjsf/utils";
import type { JSONObject } from "../api/types";
import { type Fault, findFaults, fits } from "./faults";

// What the form library asks of a validator, answered by faults.ts.

function validateFormData(data: JSONObject | undefined, schema: RJSFSchema): ValidationData<JSONObject> {
  const faults = findFaults(schema, data ?? {});
  // NB: built from lists of names; a dot in a name is not a step.
  const tree = new ErrorSchemaBuilder<JSONObject>();
  faults.forEach((fault) => tree.addErrors(fault.message, fault.path));
  return { errors: faults.map(errorOf), errorSchema: tree.ErrorSchema };
}

function errorOf(fault: Fault): RJSFValidationError {
  return {
    name: fault.keyword,
    message: fault.message,
    property: `.${fault.path.join(".")}`,
    params: { path: fault.path },
    stack: fault.message,
  };
}

/** The place that errorOf has put into an error. */
export function pathOf(error: RJSFValidationError): string[] {
  return Array.isArray(error.params?.path) ? (error.params.path as string[]) : [];
}

export const validator: ValidatorType<JSONObject> = {
  validateFormData,
  isValid: (schema, data, whole) => fits(schema, data, whole),
  rawValidation: <Result,>(schema: RJSFSchema, data?: JSONObject) => ({ errors: findFaults(schema, data ?? {}) as Result[] }),
};
