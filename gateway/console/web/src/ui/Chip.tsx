import type { ReactNode } from "react";
import type { Category } from "../api/types";

/** How the chips of a category look: what is still moving stands out. */
export const toneOf = (category: Category) => (category === "submitted" ? "plain" : "quiet");

/** A word about where something is. */
export function Chip({ tone = "plain", children }: { tone?: "plain" | "quiet"; children: ReactNode }) {
  return <span className={`chip chip-${tone}`}>{children}</span>;
}
