import { useEffect, useState, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { onSignedOut } from "../api/http";
import { loadCaller, signInAddress } from "../api/session";
import { Notice } from "../kit/Notice";

/**
 * Shown when the session ended while a page is open. The page stays, because
 * what was typed into it may not be saved yet.
 */
export function SignedOutNotice() {
  const { t } = useTranslation();
  const [signedOut, setSignedOut] = useState(false);
  useEffect(() => onSignedOut(() => setSignedOut(true)), []);
  useEffect(() => {
    if (!signedOut) {
      return;
    }
    const again = () => {
      loadCaller().then((caller) => setSignedOut(caller === null), () => {});
    };
    window.addEventListener("focus", again);
    return () => window.removeEventListener("focus", again);
  }, [signedOut]);
  if (!signedOut) {
    return null;
  }
  return (
    <Notice tone="bad" title={t("signedOut.title")} alert>
      <p>{t("signedOut.why")}</p>
      <p>
        <a href={signInAddress()} target="_blank" rel="noopener">
          {t("signedOut.link")}
        </a>
        . {t("signedOut.rest")}
      </p>
    </Notice>
  );
}

function subscribe(changed: () => void): () => void {
  window.addEventListener("online", changed);
  window.addEventListener("offline", changed);
  return () => {
    window.removeEventListener("online", changed);
    window.removeEventListener("offline", changed);
  };
}

/** Shown while the browser has no network. */
export function OfflineNotice() {
  const { t } = useTranslation();
  const online = useSyncExternalStore(subscribe, () => navigator.onLine);
  return online ? null : <Notice tone="info" title={t("offline")} alert />;
}
