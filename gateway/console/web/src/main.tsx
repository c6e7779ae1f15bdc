import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { ServiceError } from "./api/http";
import { applyLooks } from "./frame/looks";
import { speak, wantedLanguage } from "./text";
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
const page = document.getElementById("page");
if (page) {
  // NB: words that fail to load leave the page in English.
  void speak(wantedLanguage())
    .catch(() => {})
    .then(() =>
      createRoot(page).render(
        <StrictMode>
          <QueryClientProvider client={queries}>
            <App />
          </QueryClientProvider>
        </StrictMode>,
      ),
    );
}
