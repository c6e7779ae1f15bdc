import { type ReactNode, useEffect, useRef } from "react";

let pagesShown = 0;

/**
 * The heading of a page, and the name of its browser tab. It takes the focus when
 * the page was reached from another one, as a browser does for a new document.
 */
export function PageTitle({ children, tab }: { children: ReactNode; tab: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (pagesShown++ > 0) {
      heading.current?.focus();
    }
  }, []);
  useEffect(() => {
    document.title = `${tab} – troupe`;
  }, [tab]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}
