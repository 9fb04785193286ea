import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  chooseAnswer,
  chooseDownloadAnswer,
  decideChunk,
  formatStoredRange,
  parseContentRange,
  parseRange,
  placeReleaseArtifact,
} from '../../src/transfers/rules.ts'

describe('parseContentRange', () => {
  it.each([
    ['bytes 0-7/8', { kind: 'chunk', from: 0, to: 7, total: 8 }],
    ['bytes 3-3/8', { kind: 'chunk', from: 3, to: 3, total: 8 }],
    ['bytes */8', { kind: 'status', total: 8 }],
    ['bytes */0', { kind: 'status', total: 0 }],
  ])('reads %s', (header, range) => expect(parseContentRange(header)).toEqual(range))

  it.each([
    '',
    'bytes',
    'bytes 0-7',
    'bytes 0-7/*',
    'bytes */*',
    'bytes 4-3/8',
    'bytes 0-8/8',
    'bytes 0-0/0',
    'bytes -1-3/8',
    'bytes 0-7/8, 0-7/8',
    'items 0-7/8',
    'bytes 0-7/9999999999999999',
  ])('refuses %j', (header) => expect(parseContentRange(header)).toBeUndefined())
})

describe('decideChunk', () => {
  const state = { sizeBytes: 10, receivedBytes: 4, isFinished: false }

  it('stores a chunk that begins where the upload stands', () => {
    expect(decideChunk(state, { kind: 'chunk', from: 4, to: 7, total: 10 }, 4)).toEqual({
      kind: 'store',
      skipBytes: 0,
      offset: 4,
      maxBytes: 4,
    })
  })

  it('skips what it has of a chunk that begins before', () => {
    expect(decideChunk(state, { kind: 'chunk', from: 0, to: 7, total: 10 }, 8)).toEqual({
      kind: 'store',
      skipBytes: 4,
      offset: 4,
      maxBytes: 4,
    })
  })

  it.each([
    ['a gap', { kind: 'chunk', from: 5, to: 7, total: 10 } as const],
    ['a repeat', { kind: 'chunk', from: 0, to: 3, total: 10 } as const],
    ['a question', { kind: 'status', total: 10 } as const],
  ])('stores nothing of %s', (_name, range) => {
    expect(decideChunk(state, range, undefined)).toEqual({ kind: 'answer' })
  })

  it('refuses another total, and a length that is not that of the range', () => {
    expect(decideChunk(state, { kind: 'status', total: 11 }, 0)).toMatchObject({ kind: 'refuse' })
    expect(decideChunk(state, { kind: 'chunk', from: 4, to: 7, total: 10 }, 3)).toMatchObject({ kind: 'refuse' })
  })

  it('stores nothing in a finished upload', () => {
    const finished = { sizeBytes: 10, receivedBytes: 10, isFinished: true }
    expect(decideChunk(finished, { kind: 'chunk', from: 8, to: 9, total: 10 }, 2)).toEqual({ kind: 'answer' })
  })
})

/** What a client does. Positions are fractions, so that they fit any size. */
type Step =
  | { kind: 'chunk'; from: number; length: number; arrives: number }
  | { kind: 'next'; length: number; arrives: number }
  | { kind: 'status' }
  | { kind: 'crash'; unsynced: number }

const fraction = fc.double({ min: 0, max: 1, noNaN: true })
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('chunk' as const), from: fraction, length: fraction, arrives: fraction }),
    fc.record({ kind: fc.constant('next' as const), length: fraction, arrives: fraction }),
    fc.constant({ kind: 'status' as const }),
    fc.record({ kind: fc.constant('crash' as const), unsynced: fraction }),
  ),
  { maxLength: 30 },
)

/** The session as the rules see it, over a byte array in place of a disk and a row. */
function createSession(content: Uint8Array) {
  const sizeBytes = content.length
  const file = new Uint8Array(sizeBytes)
  let receivedBytes = 0
  let isFinished = false
  const state = () => ({ sizeBytes, receivedBytes, isFinished })
  return {
    file,
    state,
    send(header: string, body: Uint8Array, contentLength: number): { status: number; stored: string | undefined } {
      const range = parseContentRange(header)
      if (range === undefined) throw new Error(header)
      const decision = decideChunk(state(), range, contentLength)
      if (decision.kind === 'refuse') return { status: 400, stored: undefined }
      if (decision.kind === 'store') {
        const taken = body.subarray(decision.skipBytes, decision.skipBytes + decision.maxBytes)
        file.set(taken, decision.offset)
        receivedBytes = decision.offset + taken.length
      }
      if (chooseAnswer(state()) === 'finish') isFinished = true
      return isFinished ? { status: 200, stored: undefined } : { status: 308, stored: formatStoredRange(receivedBytes) }
    },
    /** Bytes after the durable ones were on their way to the disk: anything may stand there now. */
    crash(unsynced: number) {
      if (!isFinished)
        file.fill(0xee, receivedBytes, receivedBytes + Math.floor((sizeBytes - receivedBytes) * unsynced))
    },
  }
}

describe('a resumable upload', () => {
  it('ends as exactly the bytes that were sent, whatever repeats, overlaps, is cut, leaves gaps or crashes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), steps, (content, sequence) => {
        const total = content.length
        const session = createSession(content)
        let modelBytes = 0
        for (const step of [...sequence, { kind: 'next', length: 1, arrives: 1 } as const]) {
          if (step.kind === 'crash') {
            session.crash(step.unsynced)
            continue
          }
          const wasComplete = modelBytes === total
          const isQuestion = step.kind === 'status'
          const from = isQuestion
            ? 0
            : step.kind === 'next'
              ? Math.min(modelBytes, total - 1)
              : Math.floor(step.from * (total - 1))
          const to = isQuestion ? 0 : Math.min(total - 1, from + Math.floor(step.length * total))
          const sent = isQuestion ? new Uint8Array() : content.subarray(from, to + 1)
          const arrived = isQuestion ? sent : sent.subarray(0, Math.ceil(sent.length * step.arrives))
          const header = isQuestion ? `bytes */${total}` : `bytes ${from}-${to}/${total}`

          const answer = session.send(header, arrived, sent.length)

          // The model: a chunk counts when it touches what is stored, up to its last byte that arrived.
          if (!isQuestion && from <= modelBytes) modelBytes = Math.max(modelBytes, from + arrived.length)
          if (wasComplete || modelBytes === total) expect(answer).toEqual({ status: 200, stored: undefined })
          else
            expect(answer).toEqual({ status: 308, stored: modelBytes === 0 ? undefined : `bytes=0-${modelBytes - 1}` })
          expect(session.file.subarray(0, modelBytes)).toEqual(content.subarray(0, modelBytes))
        }
        expect(session.state()).toEqual({ sizeBytes: total, receivedBytes: total, isFinished: true })
        expect(session.file).toEqual(content)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('placeReleaseArtifact', () => {
  it.each([
    [{ candidateId: 2, uploadedId: undefined, platformStatus: 'active' }, 'take'],
    [{ candidateId: 2, uploadedId: 2, platformStatus: 'active' }, 'take'],
    [{ candidateId: 2, uploadedId: 1, platformStatus: 'active' }, 'refuse'],
    [{ candidateId: 2, uploadedId: 1, platformStatus: 'draft' }, 'replace'],
    [{ candidateId: 2, uploadedId: 1, platformStatus: undefined }, 'replace'],
    [{ candidateId: 1, uploadedId: 2, platformStatus: 'draft' }, 'refuse'],
  ] as const)('%j: %s', (input, place) => expect(placeReleaseArtifact(input)).toBe(place))
})

describe('parseRange', () => {
  it.each([
    ['bytes=0-', { start: 0, end: 9 }],
    ['bytes=3-5', { start: 3, end: 5 }],
    ['bytes=3-99', { start: 3, end: 9 }],
    ['bytes=9-', { start: 9, end: 9 }],
    ['bytes=-3', { start: 7, end: 9 }],
    ['bytes=-99', { start: 0, end: 9 }],
    ['Bytes=0-0', { start: 0, end: 0 }],
  ])('reads %s of ten bytes', (header, range) => expect(parseRange(header, 10)).toEqual(range))

  it.each(['bytes=10-', 'bytes=-0', 'bytes=-', 'bytes=5-3', 'bytes=0-1,3-4', 'items=0-1', '0-1', 'bytes=a-b', ''])(
    'serves %j whole',
    (header) => expect(parseRange(header, 10)).toBeUndefined(),
  )

  it('never leaves the file', () => {
    const position = fc.option(fc.nat(30)).map((value) => value ?? '')
    fc.assert(
      fc.property(position, position, fc.nat(20), (first, last, sizeBytes) => {
        const range = parseRange(`bytes=${first}-${last}`, sizeBytes)
        if (range === undefined) return
        expect(range.start).toBeGreaterThanOrEqual(0)
        expect(range.end).toBeGreaterThanOrEqual(range.start)
        expect(range.end).toBeLessThan(sizeBytes)
      }),
    )
  })
})

describe('chooseDownloadAnswer', () => {
  const whole = {
    method: 'GET',
    sizeBytes: 10,
    etag: '"k"',
    range: undefined,
    ifRange: undefined,
    ifNoneMatch: undefined,
  }
  const ranged = { ...whole, range: 'bytes=2-' }
  const partial = { status: 206, range: { start: 2, end: 9 } }

  it('gives a range for GET only', () => {
    expect(chooseDownloadAnswer(ranged)).toEqual(partial)
    expect(chooseDownloadAnswer({ ...ranged, method: 'HEAD' })).toEqual({ status: 200, range: undefined })
  })

  it('gives a range only when If-Range names this very content', () => {
    expect(chooseDownloadAnswer({ ...ranged, ifRange: '"k"' })).toEqual(partial)
    for (const ifRange of ['"other"', 'W/"k"', 'Wed, 21 Oct 2015 07:28:00 GMT']) {
      expect(chooseDownloadAnswer({ ...ranged, ifRange }).status).toBe(200)
    }
  })

  it('answers 304 to who has it', () => {
    for (const ifNoneMatch of ['"k"', 'W/"k"', '"a", "k"', '*']) {
      expect(chooseDownloadAnswer({ ...ranged, ifNoneMatch })).toEqual({ status: 304 })
    }
    expect(chooseDownloadAnswer({ ...whole, ifNoneMatch: '"a"' }).status).toBe(200)
  })
})
