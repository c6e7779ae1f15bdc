import type { Form, TemplateChoice, Workflow } from "../api/types";

// What the search field finds, and which workflow a template most likely means.

const fold = (text: string) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Forms that have every word of the query somewhere in what a row shows. */
export function searchForms(forms: Form[], query: string, roleName: (id: string) => string): Form[] {
  const words = fold(query).split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) {
    return forms;
  }
  return forms.filter((form) => {
    const text = fold([form.name, form.status, roleName(form.role), form.id, form.submissionId].join("\n"));
    return words.every((word) => text.includes(word));
  });
}

/**
 * The workflow that a template is probably made for: the only one, or the one
 * whose name shares the most words with the template's; "" when that is open.
 * The lists of the service do not say which are bound to which.
 */
export function likelyWorkflow(template: TemplateChoice, workflows: Workflow[]): string {
  if (workflows.length === 1) {
    return workflows[0]?.id ?? "";
  }
  const wanted = wordsOf(`${template.formId} ${template.name}`);
  let best = { id: "", shared: 0, tied: false };
  for (const workflow of workflows) {
    const shared = [...wordsOf(`${workflow.id} ${workflow.name}`)].filter((word) => wanted.has(word)).length;
    if (shared > best.shared) {
      best = { id: workflow.id, shared, tied: false };
    } else if (shared === best.shared) {
      best.tied = true;
    }
  }
  return best.shared > 0 && !best.tied ? best.id : "";
}

const commonWords = new Set(["form", "request", "workflow", "the", "of", "a"]);

function wordsOf(text: string): Set<string> {
  return new Set(fold(text).split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 1 && !commonWords.has(word)));
}
