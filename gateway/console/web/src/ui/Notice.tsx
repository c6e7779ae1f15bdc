import type { ReactNode, Ref } from "react";
import { Icon } from "./Icon";

interface NoticeProps {
  tone: "info" | "good" | "bad";
  title: string;
  children?: ReactNode;
  /** Read out at once; for what the person did not ask for. */
  alert?: boolean;
  /** For notices that take the focus. */
  ref?: Ref<HTMLDivElement>;
}

/** A framed message in the page. */
export function Notice({ tone, title, children, alert = false, ref }: NoticeProps) {
  return (
    <div className={`notice notice-${tone}`} role={alert ? "alert" : undefined} ref={ref} tabIndex={ref ? -1 : undefined}>
      <Icon name={tone === "good" ? "check" : tone === "bad" ? "warning" : "info"} />
      <div className="notice-text">
        <p className="notice-title">{title}</p>
        {children}
      </div>
    </div>
  );
}

/** In place of what could not be loaded. */
export function LoadFault({ message, retry }: { message: string; retry: () => void }) {
  return (
    <Notice tone="bad" title="Loading failed." alert>
      <p>{message}</p>
      <p>
        <button type="button" className="button" onClick={retry}>
          Try again
        </button>
      </p>
    </Notice>
  );
}

/** Grey bars in place of what is on its way. */
export function Skeleton({ label, rows = 4 }: { label: string; rows?: number }) {
  return (
    <div className="skeleton" role="status">
      <span className="visually-hidden">{label}</span>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} className="skeleton-bar" />
      ))}
    </div>
  );
}
