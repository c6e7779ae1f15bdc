import optimizeLocales from "@react-aria/optimize-locales-plugin";
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Every address in the built files is relative: the server says in <base> below
// which path the pages hang.
export default defineConfig({
  base: "./",
  // The component kit speaks thirty languages, these pages two.
  plugins: [{ ...optimizeLocales.vite({ locales: ["en-US", "de-DE"] }), enforce: "pre" }, react()],
  resolve: {
    alias: {
      // The form library can render descriptions as Markdown. Texts of templates
      // are text here, never markup, so its renderer is left out.
      "markdown-to-jsx/react": here("src/schemaform/plainText.tsx"),
      // A validator that makes code from schemas, which the policy forbids.
      "@rjsf/validator-ajv8": here("src/schemaform/noCompiler.ts"),
    },
  },
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the policy lets images be data, but files are cached
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700, // kB before compression
    // Their licences want to be handed on with what is built from them.
    license: { fileName: "licenses.md" },
  },
});
