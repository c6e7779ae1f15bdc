import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { messageFor, onSignedOut } from "./api/http";
import { loadCaller, signInAddress, signOut } from "./api/session";
import type { Caller } from "./api/types";
import { basePath, Link, useAddress } from "./navigate";
import { PortalPage } from "./portal/PortalPage";
import { parseRoute } from "./route";
import { Boundary } from "./ui/Boundary";
import { LoadFault, Notice, Skeleton } from "./ui/Notice";
import { PageTitle } from "./ui/Page";
import { useLoaded } from "./ui/useLoaded";

// The renderer of schemas is the larger half of the code, and the portal does
// not need it.
const RuntimePage = lazy(() => import("./runtime/RuntimePage"));

export function App() {
  const { loaded, reload } = useLoaded(loadCaller);
  const nobody = loaded.state === "ready" && loaded.value === null;
  useEffect(() => {
    if (nobody) {
      window.location.replace(signInAddress());
    }
  }, [nobody]);

  const caller = loaded.state === "ready" ? loaded.value : null;
  return (
    <>
      {/* NB: a link to "#main" would lead to <base>, not to this page. */}
      <button type="button" className="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to content
      </button>
      <Header caller={caller} />
      <main id="main" tabIndex={-1}>
        {loaded.state === "failed" && <LoadFault message={messageFor(loaded.fault)} retry={reload} />}
        {loaded.state !== "failed" && caller === null && <Skeleton label="Loading" />}
        {caller && (
          <Boundary fallback={(fault) => <Broken message={messageFor(fault)} />}>
            <SignedOutNotice />
            <CurrentPage caller={caller} />
          </Boundary>
        )}
      </main>
    </>
  );
}

function CurrentPage({ caller }: { caller: Caller }) {
  const address = useAddress();
  const route = useMemo(() => parseRoute(new URL(address, window.location.href).pathname, basePath()), [address]);
  switch (route.page) {
    case "portal":
      return <PortalPage caller={caller} />;
    case "runtime":
      return (
        <Suspense fallback={<Skeleton label="Loading form" />}>
          <RuntimePage key={`${route.instance.workflowId}/${route.instance.instanceId}`} instance={route.instance} caller={caller} />
        </Suspense>
      );
    case "unknown":
      return (
        <>
          <PageTitle tab="Not found">Page not found</PageTitle>
          <p>
            <Link to="">Go to your forms</Link>
          </p>
        </>
      );
  }
}

function Header({ caller }: { caller: Caller | null }) {
  const [fault, setFault] = useState("");
  const leave = async () => {
    try {
      await signOut();
      window.location.assign(new URL("login", document.baseURI));
    } catch (cause) {
      setFault(messageFor(cause));
    }
  };
  return (
    <header className="top">
      <div className="top-inside">
        <Link to="" className="brand">
          <Mark />
          troupe
        </Link>
        {caller && (
          <div className="who">
            <span className="who-name">
              <span className="visually-hidden">Signed in as </span>
              {caller.name}
            </span>
            <button type="button" className="button button-small" onClick={leave}>
              Sign out
            </button>
          </div>
        )}
      </div>
      {fault !== "" && (
        <Notice tone="bad" title="You are still signed in." alert>
          <p>{fault}</p>
        </Notice>
      )}
    </header>
  );
}

/** Four actors and what goes between them. */
function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" className="mark-ground" />
      <path d="M10.5 12.5v7M21.5 12.5v7M13 9.5h6M13 22.5h6" className="mark-lines" />
      <circle cx="10.5" cy="9.5" r="3" className="mark-dots" />
      <circle cx="21.5" cy="9.5" r="3" className="mark-dots" />
      <circle cx="10.5" cy="22.5" r="3" className="mark-dots" />
      <circle cx="21.5" cy="22.5" r="3" className="mark-dots" />
    </svg>
  );
}

/**
 * Shown when the session ended while a page is open. The page stays, because
 * what was typed into it may not be saved yet.
 */
function SignedOutNotice() {
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
    <Notice tone="bad" title="You are signed out." alert>
      <p>
        <a href={signInAddress()} target="_blank" rel="noopener">
          Sign in again in a new tab
        </a>{" "}
        and then continue on this page. Your entries are kept.
      </p>
    </Notice>
  );
}

/** The last resort, also when a newer version has other files than this one. */
function Broken({ message }: { message: string }) {
  return (
    <Notice tone="bad" title="This page could not be displayed." alert>
      <p>{message}</p>
      <p>
        <button type="button" className="button" onClick={() => window.location.reload()}>
          Reload
        </button>
      </p>
    </Notice>
  );
}
