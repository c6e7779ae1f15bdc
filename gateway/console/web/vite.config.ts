import optimizeLocales from "@react-aria/optimize-locales-plugin";
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The pages that are a chunk of their own, and what the server calls them (console.go, Page). */
const pages = { form: "src/runtime/RuntimePage.tsx", instance: "src/instance/InstancePage.tsx", operations: "src/operations/OperationsPage.tsx" };

/**
 * Names the chunks of each page in the shell, so that they are on their way with the
 * script that would ask for them. The server leaves those of other pages out.
 */
function preloadPages(): Plugin {
  return {
    name: "preload-pages",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle }) {
        const chunks = Object.values(bundle ?? {}).filter((output) => output.type === "chunk");
        const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
        const links = Object.entries(pages).flatMap(([page, module]) => {
          const start = chunks.find((chunk) => chunk.facadeModuleId?.endsWith(module));
          const names = new Set<string>();
          for (const open = start ? [start.fileName] : []; open.length > 0; ) {
            const name = open.pop() ?? "";
            if (!names.has(name) && !html.includes(name)) {
              names.add(name);
              open.push(...(byName.get(name)?.imports ?? []));
            }
          }
          return [...names].map((name) => `    <link rel="modulepreload" crossorigin href="./${name}" data-page="${page}">\n`);
        });
        return html.replace("  </head>", `${links.join("")}  </head>`);
      },
    },
  };
}

// Every address in the built files is relative: the server says in <base> below
// which path the pages hang.
export default defineConfig({
  base: "./",
  // The component kit speaks thirty languages, these pages two.
  plugins: [{ ...optimizeLocales.vite({ locales: ["en-US", "de-DE"] }), enforce: "pre" }, react(), preloadPages()],
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
