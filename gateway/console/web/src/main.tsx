import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { ServiceError } from "./api/http";
import { askEarly } from "./api/session";
import { applyLooks } from "./frame/looks";
import { basePath } from "./navigate";
import { parseRoute } from "./route";
import { language, speak, wantedLanguage } from "./text";
import { prefetchWork } from "./worklist/prefetch";
import "./kit/tokens.css";
import "./kit/base.css";
import "./kit/parts.css";
import "./kit/list.css";
import "./kit/frame.css";
import "./runtime/runtime.css";
import "./schemaform/schemaform.css";

/** How long what was loaded is shown without asking again. */
const freshFor = 10_000;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: freshFor,
      // A refusal stays one; what is passing is tried twice more.
      retry: (failed, fault) => fault instanceof ServiceError && fault.temporary && failed < 2,
    },
  },
});

applyLooks();
// What is shown first is asked for at once, and not only when it is known who asks.
askEarly();
const words = speak(wantedLanguage()).catch(() => {});
const askFirst = () => {
  const address = new URL(window.location.href);
  if (parseRoute(address.pathname, basePath()).page === "portal") {
    prefetchWork(queries, address.searchParams);
  }
};
if (language() === wantedLanguage()) {
  askFirst();
} else {
  void words.then(askFirst); // answers are in the language of the page
}
const page = document.getElementById("page");
if (page) {
  // NB: words that fail to load leave the page in English.
  void words.then(() =>
    createRoot(page).render(
      <StrictMode>
        <QueryClientProvider client={queries}>
          <App />
        </QueryClientProvider>
      </StrictMode>,
    ),
  );
}
