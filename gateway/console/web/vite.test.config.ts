import { readdirSync } from "node:fs";
import { defineConfig } from "vite";

// Node's own test runner reads JavaScript only: the tests are built like the
// pages, into a folder that is not kept.
export default defineConfig({
  logLevel: "warn",
  ssr: { noExternal: true },
  build: {
    ssr: true,
    outDir: "node_modules/.test",
    emptyOutDir: true,
    target: "node20",
    minify: false,
    rollupOptions: { input: readdirSync("test").map((name) => `test/${name}`) },
  },
});
