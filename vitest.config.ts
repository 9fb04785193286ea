import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'apps/*/test/**/*.test.ts'],
    globalSetup: ['apps/server/test/support/postgres-template.ts', 'apps/server/test/support/provide-s3-server.ts'],
    reporters: process.env.CI ? ['default', ['json', { outputFile: 'test-results.json' }]] : ['default'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A test file owns a database, a folder and a server; two at a time is what two cores carry.
    maxWorkers: 2,
  },
})
