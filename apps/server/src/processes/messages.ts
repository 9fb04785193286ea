import type { FirstAccount } from '../bootstrap.ts'
import type { Config } from '../config.ts'

/** What the first process tells one that serves. */
export type ToServer =
  | { start: { config: Config; connectionString: string; number: number } }
  | { stop: true }
  | { cut: true }
  /** Its figures are wanted. */
  | { measure: number }
  /** The figures of all. */
  | { figures: number; text: string }

/** What one that serves tells the first process. */
export type FromServer =
  | { ready: { firstAccount: FirstAccount | undefined } }
  | { failed: string }
  | { measured: number; metrics: object[] }
  | { wanted: number }
