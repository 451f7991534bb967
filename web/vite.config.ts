// SPDX-License-Identifier: MIT
// Builds index.html, styles and scripts into one file, dist/index.html: the template that the
// program fills with a run's data. Called by cmake/SnapkvPages.cmake.
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

export default defineConfig({
  plugins: [viteSingleFile()],
  build: {
    target: "es2021",
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800, // kB: every page carries the template
  },
});
