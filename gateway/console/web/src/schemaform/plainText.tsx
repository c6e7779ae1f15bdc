import type { ReactNode } from "react";

/** Stands in for the Markdown renderer of the form library: text stays text. */
export function Markdown({ children }: { children?: ReactNode }) {
  return <>{children}</>;
}

export default Markdown;
