import type { TestProject } from 'vitest/node'
import { buildS3Server, type S3ServerBuild } from './build-s3-server.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A real S3 server, or why the tests that need one are skipped. */
    s3Server: S3ServerBuild
  }
}

export default async function setup(project: TestProject): Promise<void> {
  const build = await buildS3Server()
  if ('missing' in build) console.warn(`\nTests of S3 are skipped: ${build.missing}.`)
  project.provide('s3Server', build)
}
