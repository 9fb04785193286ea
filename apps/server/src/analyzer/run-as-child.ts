import { Socket } from 'node:net'
import { type AnalyzedApp, UnanalyzableError } from './app-facts.ts'
import type { ByteSource } from './archive.ts'
import { readFrames, writeFrame } from './frames.ts'
import { type Answer, encodeAnswer, encodeRead, maxIconBytes, maxRequestBytes } from './messages.ts'
import { isOutOfMemory } from './out-of-memory.ts'

type Analyze = (source: ByteSource) => Promise<AnalyzedApp>

/**
 * The whole of a process in which one archive is analyzed, and that may not survive it. It opens nothing: the bytes of the
 * archive come from the server, through the socket that it was given as its file 3.
 */
export async function runAsChild(analyze: Analyze): Promise<void> {
  const channel = new Socket({ fd: 3 })
  const replies = readFrames(channel, maxRequestBytes)
  const { answer, icon } = await answerWith(analyze, openSource(channel, replies, Number(process.argv[2])))
  await writeFrame(channel, encodeAnswer(answer, icon))
  // The server ends this process as soon as it has the answer. Until then it can still be asked for what it took.
  await replies.next()
}

async function answerWith(
  analyze: Analyze,
  source: ByteSource,
): Promise<{ answer: Answer; icon?: Buffer | undefined }> {
  try {
    const { icon, ...facts } = await analyze(source)
    const isShort = icon === undefined || icon.length <= maxIconBytes
    return { answer: { kind: 'analyzed', facts }, icon: isShort ? icon : undefined }
  } catch (error) {
    if (error instanceof UnanalyzableError) {
      return { answer: { kind: 'unanalyzable', problem: error.problem, detail: shorten(error.message) } }
    }
    if (isOutOfMemory(error)) {
      const detail = 'it takes more memory than an analysis may'
      return { answer: { kind: 'unanalyzable', problem: 'limit_exceeded', detail } }
    }
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { answer: { kind: 'failed', reason: shorten(reason) } }
  }
}

/** The archive, of which the server reads what it is asked for. One question at a time. */
function openSource(channel: Socket, replies: AsyncGenerator<Buffer>, sizeBytes: number): ByteSource {
  let last: Promise<unknown> = Promise.resolve()
  const ask = async (offset: number, length: number): Promise<Buffer> => {
    await writeFrame(channel, encodeRead(offset, length))
    const reply = await replies.next()
    // Nobody is there to hear an answer.
    if (reply.done) process.exit(1)
    return reply.value
  }
  return {
    sizeBytes,
    read: (offset, length) => {
      const reply = last.then(() => ask(offset, length))
      last = reply.catch(() => undefined)
      return reply
    },
  }
}

function shorten(text: string): string {
  return text.slice(0, 2000)
}
