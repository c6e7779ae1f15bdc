import type { ReactNode } from "react";

/** What a status means for people. */
export type Tone = "waiting" | "good" | "bad" | "active" | "neutral";

const tones = new Set<string>(["waiting", "good", "bad", "active", "neutral"]);

/** A tone as the service names it; one that is not known is neutral. */
export const toneOf = (name: string | null | undefined): Tone => (tones.has(name ?? "") ? (name as Tone) : "neutral");

/** A status: its word, and a dot whose colour is never alone in saying it. */
export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge badge-${tone}`}>{children}</span>;
}
