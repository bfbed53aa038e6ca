import {defineConfig} from 'vitest/config';

export default defineConfig({
  base: './',
  oxc: {jsx: {runtime: 'automatic', importSource: 'preact'}},
  worker: {format: 'es'},
  // The policy of the page forbids data: URLs for code, and the polyfill is inline code.
  build: {target: 'es2022', assetsInlineLimit: 0, modulePreload: {polyfill: false}, reportCompressedSize: false},
  test: {environment: 'node', include: ['src/**/*.test.{ts,tsx}'], testTimeout: 20000},
});
