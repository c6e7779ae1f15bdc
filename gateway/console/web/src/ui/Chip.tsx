import type { ReactNode } from "react";

/** A word about where something is. */
export function Chip({ tone = "plain", children }: { tone?: "plain" | "quiet" | "good"; children: ReactNode }) {
  return <span className={`chip chip-${tone}`}>{children}</span>;
}
