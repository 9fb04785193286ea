import type { Writable } from 'node:stream'

/**
 * How the server and the process that analyzes talk: frames over a socket, each its length (4 bytes) and its content.
 * Not Node's own channel between processes: that takes messages of any length, and some that it acts upon itself.
 */
const lengthBytes = 4

/** What came is no frame, or one of more than `maxBytes`. */
export class MalformedFrameError extends Error {}

/** The frames that come in, none of them empty. Ends where the socket ends, also in the middle of a frame. */
export async function* readFrames(input: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  const length = Buffer.alloc(lengthBytes)
  let frame: Buffer | undefined
  let filled = 0
  for await (const chunk of input) {
    // Copied where it belongs at once: chunks of one byte each would take a hundred times their size if they were kept.
    for (let at = 0; at < chunk.length; ) {
      const target: Buffer = frame ?? length
      const copied = chunk.copy(target, filled, at)
      at += copied
      filled += copied
      if (filled < target.length) continue
      filled = 0
      if (frame === undefined) {
        frame = Buffer.allocUnsafeSlow(checkLength(length.readUInt32LE(), maxBytes))
      } else {
        yield frame
        frame = undefined
      }
    }
  }
}

function checkLength(length: number, maxBytes: number): number {
  if (length === 0 || length > maxBytes) throw new MalformedFrameError(`a frame of ${length} bytes`)
  return length
}

/** Resolves when the frame is on its way: whoever reads nothing has one frame waiting, and not many. */
export async function writeFrame(output: Writable, content: Buffer): Promise<void> {
  const length = Buffer.alloc(lengthBytes)
  length.writeUInt32LE(content.length)
  await new Promise<void>((resolve, reject) => {
    output.cork()
    output.write(length)
    output.write(content, (error) => (error ? reject(error) : resolve()))
    output.uncork()
  })
}
