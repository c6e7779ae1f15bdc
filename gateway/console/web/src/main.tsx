import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import "./style/tokens.css";
import "./style/base.css";
import "./style/parts.css";
import "./style/portal.css";
import "./style/runtime.css";
import "./style/schemaform.css";

const page = document.getElementById("page");
if (page) {
  createRoot(page).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
