// The JSON of the service as these pages read it. Members that a newer service
// adds are passed over.

/** A JSON object whose members are not known beforehand. */
export type JSONObject = { [key: string]: unknown };

/** Who is signed in. */
export interface Caller {
  id: string;
  name: string;
  privileges: string[];
}

/** Privileges that these pages look at; the server asks again in any case. */
export const privilege = {
  portal: "mod-form-portal",
  form: "mod-form",
  checklist: "mod-checklist",
} as const;

export type FormType = "Form" | "Checklist" | "WorkflowForm";

/** One form or checklist in a list (group A). */
export interface Form {
  id: string;
  formType: FormType;
  formId: string;
  submissionId: string;
  name: string;
  /** Relative to the base path. */
  fullPath: string;
  by: string;
  /** Milliseconds. */
  when: number;
  /** Empty for what was never submitted. */
  status: string;
  role: string;
}

export interface Role {
  id: string;
  name: string;
}

export interface RoleInfo {
  formRoles: Role[];
  checklistRoles: Role[];
}

export interface Workflow {
  id: string;
  name: string;
}

/** A form or checklist that a role may create. */
export interface TemplateChoice {
  formId: string;
  name: string;
  description: string;
  lastModified: number;
}

/** What a template's forms can be bound to, of what the caller may start. */
export interface WorkflowsOf {
  workflows: Workflow[];
  /** A form of it must be bound to one. */
  needsWorkflow: boolean;
}

export type Category = "current" | "submitted" | "archived";

export interface ChecklistItem {
  id: string;
  label: string;
  help?: string;
  required?: boolean;
}

/** What a form's page shows; a form has a schema, a checklist has items. */
export interface Template {
  formId: string;
  name: string;
  description?: string;
  schema?: JSONObject;
  ui?: JSONObject;
  items?: ChecklistItem[];
  /** The event that submitting sends to the form's workflow, if any. */
  submit?: string;
}

export interface Draft {
  revision: number;
  savedAt: number;
  data: JSONObject;
}

/** Where one state machine of an instance stands. */
export interface Position {
  stateMachineId: string;
  nodeId: string;
}

/** What GET form-runtime/api/v1/form answers. */
export interface FormView {
  form: Form;
  category: Category;
  /** Null when the template is gone. */
  template: Template | null;
  data: JSONObject;
  draft: Draft | null;
  states: Position[];
  /** Milliseconds; 0 when it was never submitted. */
  submittedAt: number;
  /** This caller may save and submit now. */
  editable: boolean;
}

export type Guard = "true" | "unknown" | "false";

export interface Transition {
  stateMachineId: string;
  nodeId: string;
  targets: string[];
  guard: Guard;
}

/** An event that the caller may send now (group B). */
export interface WorkflowEvent {
  name: string;
  guard: Guard;
  transitions: Transition[];
  /** The JSON Schema of the event's data. */
  schema: JSONObject | null;
}

export interface HistoryEntry {
  user: string;
  startState: string[];
  /** Empty for the entry that the creation made. */
  transitionEvent: string;
  endState: string[];
  ts: string;
}

/** The data of the event "entry" of a watch. */
export interface Watched {
  /** The entry's place in the history, counted from 1. */
  sequence: number;
  entry: HistoryEntry;
  states: Position[];
}
