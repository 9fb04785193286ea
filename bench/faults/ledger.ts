import type { ReleasePlatform } from '@godwit/contract'
import { createAnswerBook } from './answer-book.ts'

/** Of checks that were answered at most this long before a SIGKILL, the observation may be lost. The answer never is. */
const lossMs = 250
/** What a killed process had answered may be read so much later; the next one does not answer so soon. */
const readMs = 1000

export type LedgerRelease = { key: string; appId: string; releaseId: number; version: string }
export type LedgerUpload = LedgerRelease & { platform: ReleasePlatform; arch: string; sha256: string }
export type LedgerEvent = { clientId: string; appId: string }

/** Everything that the service has acknowledged: what it must still know at the end. */
export function createLedger() {
  const killsMs: number[] = []
  const imported: LedgerEvent[] = []
  const checks: { clientId: string; appId: string; atMs: number }[] = []
  return {
    answers: createAnswerBook(),
    apps: new Map<string, string>(),
    /** By appId and version. */
    releases: new Map<string, LedgerRelease>(),
    uploads: [] as LedgerUpload[],
    /** By the hash that devices are told: the SHA-256 of what they download. */
    patchBytes: new Map<string, string>(),
    events: [] as LedgerEvent[],
    /** Events that were sent, but whose sender never heard an answer: counted once or not at all. */
    uncertainEvents: [] as LedgerEvent[],
    uncertainChecks: [] as LedgerEvent[],
    checks,
    /** Devices of imported history. */
    imported,
    /** A process that answers devices was killed. */
    markKilled: () => killsMs.push(performance.now()),
    /** Whether the observation of this check may be gone. */
    mayBeLost: (atMs: number) => killsMs.some((killedMs) => atMs > killedMs - lossMs && atMs < killedMs + readMs),
  }
}

export type Ledger = ReturnType<typeof createLedger>

export function keyOfRelease(appId: string, version: string): string {
  return `${appId} ${version}`
}
