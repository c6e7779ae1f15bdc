import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo } from "react";
import { I18nProvider } from "react-aria-components";
import { useTranslation } from "react-i18next";
import { messageFor } from "./api/http";
import { loadCaller, signInAddress } from "./api/session";
import { onAskAgain } from "./api/stream";
import type { Caller } from "./api/types";
import { Header } from "./frame/Header";
import { OfflineNotice, SignedOutNotice } from "./frame/SessionNotice";
import { Boundary } from "./kit/Boundary";
import { Button } from "./kit/Button";
import { LoadFault, Notice, Skeleton } from "./kit/Notice";
import { PageTitle } from "./kit/Page";
import { useLoaded } from "./kit/useLoaded";
import { basePath, entryKey, knownEntryKey, Link, useAddress } from "./navigate";
import { parseRoute } from "./route";
import { locale } from "./text";
import { WorkPage } from "./worklist/WorkPage";

// The renderer of schemas is the larger half of the code, and lists do not need it.
const RuntimePage = lazy(() => import("./runtime/RuntimePage"));
const InstancePage = lazy(() => import("./instance/InstancePage"));
const OperationsPage = lazy(() => import("./operations/OperationsPage"));

export function App() {
  const { t } = useTranslation();
  const { loaded, reload, replace } = useLoaded(loadCaller, { isSame: true });
  const queries = useQueryClient();
  const nobody = loaded.state === "ready" && loaded.value === null;
  useEffect(() => {
    if (nobody) {
      window.location.replace(signInAddress());
    }
  }, [nobody]);

  // NB: who is signed out meanwhile stays on the page, where a notice says so.
  useEffect(
    () =>
      onAskAgain(() => {
        loadCaller().then((now) => now && replace(now), () => {});
        void queries.invalidateQueries();
      }),
    [queries, replace],
  );

  const caller = loaded.state === "ready" ? loaded.value : null;
  return (
    <I18nProvider locale={locale()}>
      {/* NB: a link to "#main" would lead to <base>, not to this page. */}
      <button type="button" className="skip" onClick={() => document.getElementById("main")?.focus()}>
        {t("skip")}
      </button>
      <Header caller={caller} />
      <main id="main" tabIndex={-1}>
        {loaded.state === "failed" && <LoadFault fault={loaded.fault} retry={reload} />}
        {loaded.state !== "failed" && caller === null && <Skeleton />}
        {caller && (
          <Boundary fallback={(fault) => <Broken message={messageFor(fault)} />}>
            <SignedOutNotice />
            <OfflineNotice />
            <CurrentPage caller={caller} />
          </Boundary>
        )}
      </main>
    </I18nProvider>
  );
}

function CurrentPage({ caller }: { caller: Caller }) {
  const { t } = useTranslation();
  const address = useAddress();
  const route = useMemo(() => parseRoute(new URL(address, window.location.href).pathname, basePath()), [address]);
  switch (route.page) {
    case "portal":
      return <WorkPage caller={caller} />;
    case "runtime":
    case "begin": {
      // NB: a form that is made while its page is open gets an address, and the page stays.
      const key = route.page === "begin" ? entryKey() : (knownEntryKey() ?? `${route.instance.workflowId}/${route.instance.instanceId}`);
      return (
        <Suspense fallback={<Skeleton label={t("form.loading")} />}>
          <RuntimePage key={key} subject={route} caller={caller} />
        </Suspense>
      );
    }
    case "instance":
      return (
        <Suspense fallback={<Skeleton />}>
          <InstancePage key={`${route.instance.workflowId}/${route.instance.instanceId}`} instance={route.instance} caller={caller} />
        </Suspense>
      );
    case "operations":
      return (
        <Suspense fallback={<Skeleton rows={6} />}>
          <OperationsPage caller={caller} />
        </Suspense>
      );
    case "unknown":
      return (
        <>
          <PageTitle tab={t("notFound.tab")}>{t("notFound.title")}</PageTitle>
          <p>
            <Link to="">{t("notFound.link")}</Link>
          </p>
        </>
      );
  }
}

/** The last resort, also when a newer version has other files than this one. */
function Broken({ message }: { message: string }) {
  const { t } = useTranslation();
  return (
    <Notice tone="bad" title={t("fault.broken")} alert>
      <p>{message}</p>
      <p>
        <Button onPress={() => window.location.reload()}>{t("reload")}</Button>
      </p>
    </Notice>
  );
}
