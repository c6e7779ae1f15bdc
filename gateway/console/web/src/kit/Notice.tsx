import { CircleAlert, CircleCheck, Info, Lock } from "lucide-react";
import type { ReactNode, Ref } from "react";
import { useTranslation } from "react-i18next";
import { messageFor, ServiceError } from "../api/http";
import { Button } from "./Button";

interface NoticeProps {
  tone: "info" | "good" | "bad";
  title: ReactNode;
  children?: ReactNode;
  /** Read out at once; for what the person did not ask for. */
  alert?: boolean;
  /** For notices that take the focus. */
  ref?: Ref<HTMLDivElement>;
}

/** A framed message in the page. */
export function Notice({ tone, title, children, alert = false, ref }: NoticeProps) {
  const Sign = tone === "good" ? CircleCheck : tone === "bad" ? CircleAlert : Info;
  return (
    <div className={`notice notice-${tone}`} role={alert ? "alert" : undefined} ref={ref} tabIndex={ref ? -1 : undefined}>
      <Sign aria-hidden className="notice-sign" />
      <div className="notice-text">
        <p className="notice-title">{title}</p>
        {children}
      </div>
    </div>
  );
}

/** In place of what could not be loaded. What was refused is not asked for again. */
export function LoadFault({ fault, retry }: { fault: unknown; retry: () => void }) {
  const { t } = useTranslation();
  if (fault instanceof ServiceError && fault.status === 403) {
    return (
      <div className="refused">
        <Lock aria-hidden className="refused-sign" />
        <p className="empty-title">{t("fault.noAccess")}</p>
        <p>{t("work.askAdmin")}</p>
      </div>
    );
  }
  return (
    <Notice tone="bad" title={t("fault.loadFailed")} alert>
      <p>{messageFor(fault)}</p>
      <p>
        <Button small onPress={retry}>
          {t("retry")}
        </Button>
      </p>
    </Notice>
  );
}

/** Grey bars in place of what is on its way. */
export function Skeleton({ label, rows = 4 }: { label?: string; rows?: number }) {
  const { t } = useTranslation();
  return (
    <div className="skeleton" role="status">
      <span className="visually-hidden">{label ?? t("loading")}</span>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} className="skeleton-bar" />
      ))}
    </div>
  );
}

interface EmptyProps {
  sign: ReactNode;
  title: string;
  text: string;
  action?: ReactNode;
}

/** In place of a list that has nothing. */
export function Empty({ sign, title, text, action }: EmptyProps) {
  return (
    <div className="empty">
      <span className="empty-sign">{sign}</span>
      <p className="empty-title">{title}</p>
      <p>{text}</p>
      {action}
    </div>
  );
}
