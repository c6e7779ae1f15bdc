import type { Form } from "../api/types";

// What the search field finds.

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
