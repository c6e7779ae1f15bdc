// What a picture of a statechart says in numbers: who cannot see it reads a table.

export interface Standing {
  machine: string;
  node: string;
  count: number;
  /** "about": an estimate; "over": there are more. */
  how: "" | "about" | "over";
}

/** Reads "1,234", "about 78,000" and "over 78,000". */
export function parseCount(text: string): Pick<Standing, "count" | "how"> | null {
  const [, how, digits] = /^(?:(about|over) )?([\d,]+)$/.exec(text.trim()) ?? [];
  return digits === undefined ? null : { count: Number(digits.replaceAll(",", "")), how: (how ?? "") as Standing["how"] };
}

/** Where instances stand, from the text of a picture (gateway/INTERFACE.md, "Pictures"). Nothing of it is put into the page. */
export function standingOf(svg: string): Standing[] {
  // NB: its style would be tried in a document of ours, which the policy refuses.
  const picture = new DOMParser().parseFromString(svg.replace(/<style>[^<]*<\/style>/g, ""), "image/svg+xml");
  return [...picture.querySelectorAll("g.count")].flatMap((group) => {
    const count = parseCount(group.querySelector("text")?.textContent ?? "");
    return count ? [{ machine: group.getAttribute("data-machine") ?? "", node: group.getAttribute("data-node") ?? "", ...count }] : [];
  });
}
