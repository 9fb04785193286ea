import { StringDecoder } from 'node:string_decoder'
import { maxRejectedLines } from '@godwit/contract'
import type { Db } from '../../db/connection.ts'
import { AppError } from '../../errors.ts'
import { hourMs } from '../../time.ts'
import type { ImportResult, RejectedLine } from '../activity-store.ts'
import { writeClientKey } from '../client-key.ts'
import type { ObservationContext } from '../segment.ts'
import type { AppState } from './app-state.ts'
import { applyObservations, type Batch } from './apply-observations.ts'
import { changeApp, findRefusedReleases } from './compact-app.ts'
import { type ImportLine, maxLineChars, readImportLine } from './import-lines.ts'
import { needColumns } from './load-state.ts'
import { tidyApp } from './maintain-app.ts'
import { createMarkSet, hashText, type MarkSet, markOf } from './mark-set.ts'
import { numberDevices } from './number-devices.ts'
import { findImportMarks, upsertImportMarks } from './queries.ts'
import { appendNumber, createNumberList, type NumberList } from './sort-numbers.ts'
import { storeChanges } from './store-changes.ts'
import type { StoreContext } from './store-context.ts'

/** Lines of one transaction. */
const linesAtOnce = 250_000
/** Hours whose marks stay in memory between two transactions: a file in the order of time goes on in the last ones. */
const marksInMemory = 4

/** One import, which takes the bytes of newline-delimited JSON piece by piece. */
export type ImportSession = {
  take: (bytes: Uint8Array) => Promise<void>
  finish: () => Promise<ImportResult>
}

/** As of a change of the app. */
type KnownMarks = { seq: number; sets: Map<number, MarkSet> }

type Lines = {
  count: number
  words: Uint32Array
  times: Float64Array
  contexts: Uint32Array
  table: ObservationContext[]
  /** What a line's mark has of its context, and where a context is in the table. */
  hashes: number[]
  places: Map<string, number>
}

export function createImportSession(context: StoreContext, appId: string): ImportSession {
  const decoder = new StringDecoder('utf8')
  const result: ImportResult = { accepted: 0, duplicates: 0, rejected: [], rejectedCount: 0 }
  const marks: KnownMarks = { seq: -1, sets: new Map() }
  let lines = createLines()
  /** Lines are read while those before them are stored. */
  let spare = createLines()
  let storing: Promise<void> = Promise.resolve()
  let rest = ''
  let lineNumber = 0

  const reject = (rejected: RejectedLine) => {
    result.rejectedCount += 1
    if (result.rejected.length < maxRejectedLines) result.rejected.push(rejected)
  }
  const takeLine = (text: string, nowMs: number) => {
    lineNumber += 1
    if (text.trim() === '') return
    const line = readImportLine(text, nowMs)
    if (typeof line === 'string') reject({ line: lineNumber, reason: line })
    else appendLine(lines, line)
  }
  const store = async (full: Lines) => {
    const stored = await context.exclusively(appId, () =>
      changeApp(context, { appId }, (trx, state) => storeLines(context, trx, state, full, marks)),
    )
    if (stored === undefined) throw new AppError('not_found')
    result.accepted += stored.accepted
    result.duplicates += stored.duplicates
    clearLines(full)
    await tidyApp(context, appId)
  }
  const startStoring = async () => {
    await storing
    const full = lines
    lines = spare
    spare = full
    storing = store(full)
    // Whoever waits for it next is told.
    storing.catch(() => undefined)
  }
  return {
    take: async (bytes) => {
      const nowMs = context.now()
      const text = rest + decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
      let from = 0
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
        takeLine(text.slice(from, end), nowMs)
        from = end + 1
        if (lines.count === linesAtOnce) await startStoring()
      }
      // The end of a line that is too long in any case need not be kept.
      rest = text.slice(from, from + maxLineChars * 2)
    },
    finish: async () => {
      rest += decoder.end()
      if (rest !== '') takeLine(rest, context.now())
      rest = ''
      await startStoring()
      await storing
      return result
    },
  }
}

function clearLines(lines: Lines): void {
  lines.count = 0
  lines.table = []
  lines.hashes = []
  lines.places.clear()
}

function createLines(): Lines {
  return {
    count: 0,
    words: new Uint32Array(1024 * 4),
    times: new Float64Array(1024),
    contexts: new Uint32Array(1024),
    table: [],
    hashes: [],
    places: new Map(),
  }
}

function appendLine(lines: Lines, line: ImportLine): void {
  const at = lines.count
  if (at === lines.times.length) growLines(lines)
  writeClientKey(line.clientId, lines.words, at * 4)
  lines.times[at] = line.timeMs
  lines.contexts[at] = findContext(lines, line)
  lines.count += 1
}

function growLines(lines: Lines): void {
  const { words, times, contexts } = lines
  lines.words = new Uint32Array(words.length * 2)
  lines.words.set(words)
  lines.times = new Float64Array(times.length * 2)
  lines.times.set(times)
  lines.contexts = new Uint32Array(contexts.length * 2)
  lines.contexts.set(contexts)
}

/** The arch is part of what makes two lines different, and of nothing else. */
function findContext(lines: Lines, { platform, arch, releaseVersion, patch }: ImportLine): number {
  const name = `${patch}\0${platform}\0${arch}\0${releaseVersion === null ? '' : `=${releaseVersion}`}`
  const known = lines.places.get(name)
  if (known !== undefined) return known
  lines.places.set(name, lines.table.length)
  lines.hashes.push(hashText(name))
  return lines.table.push({ release: releaseVersion, platform, running: patch, rolledBack: [] }) - 1
}

async function storeLines(
  context: StoreContext,
  trx: Db,
  state: AppState,
  lines: Lines,
  marks: KnownMarks,
): Promise<{ accepted: number; duplicates: number }> {
  if (lines.count === 0) return { accepted: 0, duplicates: 0 }
  await needColumns(trx, state)
  const accepted = await markLines(context, trx, state, lines, marks)
  const keys = { words: lines.words, count: lines.count, firstOffset: 0, stride: 4 }
  const { numbers, newClients } = await numberDevices(context, trx, state, [keys])
  const refusedReleases = await findRefusedReleases(trx, state, lines.table)
  const batch: Batch = { ...lines, numbers, refusedReleases }
  await storeChanges(context, trx, state, applyObservations(state, batch), newClients)
  marks.seq = state.seq
  return { accepted, duplicates: lines.count - accepted }
}

/**
 * Remembers every line, and returns how many were not known. Hour by hour: the marks of a whole month would not fit into
 * memory, and a file need not be in the order of time.
 */
async function markLines(
  context: StoreContext,
  trx: Db,
  state: AppState,
  lines: Lines,
  known: KnownMarks,
): Promise<number> {
  const { app } = state
  // Another import of the app may have added to them.
  if (known.seq !== state.seq) known.sets.clear()
  const hours = new Map<number, NumberList>()
  for (let index = 0; index < lines.count; index += 1) {
    const list = hours.get(hourOf(lines, index)) ?? createNumberList()
    hours.set(hourOf(lines, index), list)
    appendNumber(list, index)
  }
  let accepted = 0
  for (const [startMs, { numbers, length }] of [...hours].sort(([a], [b]) => a - b)) {
    const marks = known.sets.get(startMs) ?? createMarkSet(await findImportMarks(trx, { app, startMs }))
    for (const index of numbers.subarray(0, length)) {
      const hash = lines.hashes[lines.contexts[index] ?? 0] ?? 0
      if (marks.add(markOf(lines.words, index * 4, lines.times[index] ?? 0, hash))) accepted += 1
    }
    await upsertImportMarks(trx, { app, startMs, marks: marks.encode(), now: new Date(context.now()) })
    known.sets.set(startMs, marks)
    const oldest = known.sets.keys().next().value
    if (known.sets.size > marksInMemory && oldest !== undefined) known.sets.delete(oldest)
  }
  return accepted
}

function hourOf(lines: Lines, index: number): number {
  const timeMs = lines.times[index] ?? 0
  return timeMs - (timeMs % hourMs)
}
