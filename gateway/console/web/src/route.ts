import type { Instance } from "./api/runtime";

// Which page an address is. Pure: the address and the base path come in.

export type Route =
  | { page: "portal" }
  | { page: "runtime"; formId: string; instance: Instance }
  | { page: "begin"; formId: string; workflowId: string; checklist: boolean }
  | { page: "instance"; instance: Instance }
  | { page: "operations" }
  | { page: "unknown" };

/** In place of an instance's id in the path of a form that is not made yet. No instance has it. */
const newForm = "new";
const newChecklist = "new-checklist";

/** basePath ends in a slash, as the path of document.baseURI does. */
export function parseRoute(pathname: string, basePath: string): Route {
  if (pathname === basePath || pathname === basePath.slice(0, -1)) {
    return { page: "portal" };
  }
  if (!pathname.startsWith(basePath)) {
    return { page: "unknown" };
  }
  const segments = pathname.slice(basePath.length).split("/").map(decode);
  const [page, formId, workflowId, instanceId, file] = segments;
  if (page === "form-runtime" && formId && workflowId && instanceId && file === "index.html" && segments.length === 5) {
    if (instanceId === newForm || instanceId === newChecklist) {
      return { page: "begin", formId, workflowId, checklist: instanceId === newChecklist };
    }
    return { page: "runtime", formId, instance: { workflowId, instanceId } };
  }
  const [, ofWorkflow, id] = segments;
  if (page === "instances" && ofWorkflow && id && segments.length === 3) {
    return { page: "instance", instance: { workflowId: ofWorkflow, instanceId: id } };
  }
  if (page === "operations" && segments.length === 1) {
    return { page: "operations" };
  }
  return { page: "unknown" };
}

/** An escape that cannot be decoded leaves nothing, which is no identifier. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

/** The path of an instance's page, relative to the base path. */
export function instancePath(workflowId: string, instanceId: string): string {
  return `instances/${encodeURIComponent(workflowId)}/${encodeURIComponent(instanceId)}`;
}

/** The path of the page on which a task is brought on, with its form open when it has one. */
export function taskPath({ workflowId, instanceId, taskId, form }: { workflowId: string; instanceId: string; taskId: string; form: string | null }): string {
  return instancePath(workflowId, instanceId) + (form === null ? "" : `?task=${encodeURIComponent(taskId)}`);
}

/** The path of a form's page, relative to the base path (gateway/INTERFACE.md, "Fields of a form"). */
export function runtimePath(formId: string, workflowId: string, instanceId: string): string {
  return `form-runtime/${[formId, workflowId, instanceId].map(encodeURIComponent).join("/")}/index.html`;
}

/** The path of a form that is not made yet, relative to the base path. */
export const beginPath = (formId: string, workflowId: string, checklist: boolean) => runtimePath(formId, workflowId, checklist ? newChecklist : newForm);

/**
 * Where a svcRedirect may lead: a path of this server, or "" for everything
 * else. It is data of a workflow, and a link to elsewhere would borrow our name.
 */
export function safeRedirect(target: string, base: string): string {
  // NB: a browser takes "//x", "/\x" and "/<tab>/x" for the name of a server.
  if (!/^[\x21-\x7e]{1,2048}$/.test(target) || target.includes("\\") || target.startsWith("//") || /^[a-z][a-z0-9+.-]*:/i.test(target)) {
    return "";
  }
  const from = new URL(base);
  const to = new URL(target, from);
  const path = to.pathname + to.search + to.hash;
  // NB: dots that are resolved away can leave such a name behind: "/.//x". What
  // a browser makes of the result counts, not what it was made of.
  return /^\/(?![/\\])/.test(path) && to.origin === from.origin && new URL(path, from).href === to.href ? path : "";
}
