import type { ReleasePlatform } from '@godwit/contract'

/** What an archive says about the app in it. */
export type AppFacts = {
  displayName: string
  packageName: string
  /** Android: API level or codename. Others: the oldest version of the system that runs it. */
  minSdkVersion: string
  targetSdkVersion: string
  /** Each once, in the names that the platform has for them: `arm64-v8a`, `arm64`, `x86_64`. */
  architectures: string[]
  /** A PNG of our own making. undefined: it has none that can be read. */
  icon?: Buffer
}

/** With the platform that the content of the archive shows. */
export type AnalyzedApp = AppFacts & { platform: ReleasePlatform }

/** Why an archive stays unanalyzed. Kept in the database and shown to operators: codes stay as they are. */
export type AnalysisProblem =
  /** No zip archive, or one that is cut off or damaged. */
  | 'damaged_archive'
  | 'encrypted_archive'
  /** Nothing in it is an app of a known kind. */
  | 'unknown_format'
  /** A manifest, property list, resource table or executable that breaks the rules of its format. */
  | 'malformed_content'
  /** A required field is not in it. The detail names the field. */
  | 'missing_field'
  /** More entries, bytes, nesting or work than the limits allow. */
  | 'limit_exceeded'

/** The archive is at fault: trying again would end in the same way. */
export class UnanalyzableError extends Error {
  readonly problem: AnalysisProblem

  constructor(problem: AnalysisProblem, detail: string) {
    super(detail)
    this.problem = problem
  }
}
