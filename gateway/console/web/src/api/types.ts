// The JSON of the service as these pages read it, from gateway/openapi.yaml. Members
// that a newer service adds are ignored.
import type { components } from "./openapi";

type Schemas = components["schemas"];

/** A JSON object whose members are not known beforehand. */
export type JSONObject = Schemas["Object"];

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
  workflows: "mod-workflows",
  jobs: "mod-jobs",
  admin: "mod-admin",
  tokens: "mod-api-tokens",
} as const;

/** Who may run the service, its jobs, or has API tokens: the page of operations has something for them. */
export const mayOperate = (caller: Caller) => [privilege.workflows, privilege.jobs, privilege.admin, privilege.tokens].some((each) => caller.privileges.includes(each));

export type SignedIn = Schemas["Caller"];
/** A form, or an instance that is none. Pages have how people see them, as a summary has it; those of requests name the workflow. */
export type Form = Omit<Schemas["Form"], "formType"> & Pick<Schemas["Request"], "formType"> & Partial<Pick<Schemas["Request"], "title" | "states" | "columns" | "workflowId">>;
export type FormPage = Omit<Schemas["FormPage"], "forms"> & { forms: Form[] };
export type Role = Schemas["Role"];
export type RoleInfo = Schemas["RoleInfo"];
export type Workflow = Schemas["Workflow"];
export type TemplateChoice = Schemas["FormTemplate"];
export type TemplateView = Schemas["TemplateView"];
/** A position as people see it. */
export type Status = Schemas["Status"];
export type Presentation = Schemas["Presentation"];
export type Misfit = Schemas["Misfit"];
export type FormView = Schemas["FormView"];
/** What is filled in: a form that somebody begins, or that of a task. */
export type Fillable = Pick<FormView, "template" | "data" | "draft"> & Partial<Pick<FormView, "submittedAt">>;
export type Category = FormView["category"];
export type Template = Schemas["Template"];
export type ChecklistItem = Schemas["ChecklistItem"];
export type Draft = Schemas["Draft"];
export type Saved = Schemas["DraftSaved"];
export type Position = Schemas["Position"];
/** label and style come from the definition, where it has them. */
export type WorkflowEvent = Schemas["Event"] & { label?: string | undefined; style?: string | undefined };
export type Guard = Schemas["Guard"];
export type Transition = Schemas["Transition"];
export type Watched = Schemas["Watched"];
export type InstanceReply = Schemas["InstanceReply"];
export type EventList = Schemas["EventList"];
export type Pending = Schemas["Pending"];
