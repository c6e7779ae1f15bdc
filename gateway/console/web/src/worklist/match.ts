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

/** Forms of the chosen templates and statuses; nothing chosen is everything. */
export function filterForms(forms: Form[], chosen: { template: string[]; status: string[] }): Form[] {
  const wanted = (list: string[], value: string) => list.length === 0 || list.includes(value);
  return forms.filter((form) => wanted(chosen.template, form.name) && wanted(chosen.status, form.status));
}

/** Forms by a column, "when" or "-when" for the newest first; of equals the newest first. */
export function sortForms(forms: Form[], sort: string, roleName: (id: string) => string): Form[] {
  const falling = sort.startsWith("-");
  const compare: Record<string, (a: Form, b: Form) => number> = {
    name: (a, b) => a.name.localeCompare(b.name),
    status: (a, b) => a.status.localeCompare(b.status),
    role: (a, b) => roleName(a.role).localeCompare(roleName(b.role)),
    when: (a, b) => a.when - b.when,
  };
  const by = compare[sort.replace(/^-/, "")] ?? compare.when;
  return forms.toSorted((a, b) => (by ? (falling ? -by(a, b) : by(a, b)) : 0) || b.when - a.when);
}
