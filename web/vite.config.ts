// SPDX-License-Identifier: MIT
// Builds a page with its styles and scripts into one file: dist/index.html, the template that the
// program fills with a run's data, or, with --mode server, dist/server.html, the page of `snapkv
// serve`. `vite --mode server` serves the page with the API of a `snapkv serve` at port 8080.
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const kApi = ["/v1", "/props", "/tokenize", "/detokenize", "/apply-template"];

export default defineConfig(({ mode }) => ({
  plugins: [viteSingleFile()],
  esbuild: { charset: "ascii" }, // the page is a text in a C++ source, where compilers warn of control characters
  server: { proxy: Object.fromEntries(kApi.map((path) => [path, "http://127.0.0.1:8080"])) },
  build: {
    emptyOutDir: false, // the other page is there too
    rollupOptions: { input: mode === "server" ? "server.html" : "index.html" },
    target: "es2021",
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800, // kB: every page contains the template
  },
}));
