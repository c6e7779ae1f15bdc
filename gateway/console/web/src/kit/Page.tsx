import { type ReactNode, useEffect, useRef } from "react";
import { t } from "../text";

let pagesShown = 0;

interface PageTitleProps {
  children: ReactNode;
  /** The name of the browser's tab. */
  tab: string;
}

/**
 * The heading of a page. It takes the focus when the page was reached from another
 * one, as a browser does for a new document.
 */
export function PageTitle({ children, tab }: PageTitleProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (pagesShown++ > 0) {
      heading.current?.focus();
    }
  }, []);
  useEffect(() => {
    document.title = `${tab} – ${t("product")}`;
  }, [tab]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}
