// What a picture of a statechart says in numbers: who cannot see it reads a table.

export interface Standing {
  machine: string;
  node: string;
  count: number;
  /** "about": an estimate; "over": there are more. */
  how: "" | "about" | "over";
}

/** Reads what the attributes data-count and data-how say, whatever the language of the picture. */
export function parseCount(count: string | null, how: string | null): Pick<Standing, "count" | "how"> | null {
  return count !== null && /^\d+$/.test(count) ? { count: Number(count), how: how === "about" || how === "over" ? how : "" } : null;
}

/** Where instances stand, from the text of a picture (gateway/INTERFACE.md, "Pictures"). Nothing of it is put into the page. */
export function standingOf(svg: string): Standing[] {
  // NB: its style would be tried in a document of ours, which the policy refuses.
  const picture = new DOMParser().parseFromString(svg.replace(/<style>[^<]*<\/style>/g, ""), "image/svg+xml");
  return [...picture.querySelectorAll("g.count")].flatMap((group) => {
    const count = parseCount(group.getAttribute("data-count"), group.getAttribute("data-how"));
    return count ? [{ machine: group.getAttribute("data-machine") ?? "", node: group.getAttribute("data-node") ?? "", ...count }] : [];
  });
}
