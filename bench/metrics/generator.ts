import { createWriteStream } from 'node:fs'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ImportActivityResponse } from '@godwit/contract'
import type { z } from 'zod'
import { type ActivityCounts, createActivity, type Plan } from './activity.ts'
import { createImportFormat, createRowFormat, encodeDay } from './encode.ts'

/** A process of its own, so that making lines takes no time from whoever measures. */
export type GeneratorTask =
  | { to: 'nothing'; plan: Plan }
  | { to: 'file'; plan: Plan; file: string }
  | { to: 'server'; plan: Plan; url: string; token: string }

export type GeneratorMessage =
  | { kind: 'day'; day: number; observations: number; seconds: number }
  | { kind: 'end'; counts: ActivityCounts; seconds: number }

type Imported = z.infer<typeof ImportActivityResponse>

async function run(task: GeneratorTask): Promise<void> {
  const { plan } = task
  const activity = createActivity(plan)
  const format = task.to === 'file' ? createRowFormat() : createImportFormat(plan)
  const startedAt = performance.now()
  for (let day = 0; day < plan.days; day += 1) {
    const [before, dayStartedAt] = [activity.counts.observations, performance.now()]
    const blocks = encodeDay(activity, day, plan, format)
    if (task.to === 'nothing') for (const _ of blocks);
    if (task.to === 'file') await pipeline(blocks, createWriteStream(task.file, { flags: day === 0 ? 'w' : 'a' }))
    const imported = task.to === 'server' ? await importBlocks(task, blocks) : undefined
    const observations = activity.counts.observations - before
    if (imported !== undefined && (imported.accepted !== observations || imported.rejected_count > 0)) {
      throw new Error(`of ${observations} lines of a day, the import says ${JSON.stringify(imported).slice(0, 500)}`)
    }
    send({ kind: 'day', day, observations, seconds: secondsSince(dayStartedAt) })
  }
  send({ kind: 'end', counts: activity.counts, seconds: secondsSince(startedAt) })
}

/** One request, as long as it may be. */
async function importBlocks(
  { url, token }: { url: string; token: string },
  blocks: Iterable<Buffer>,
): Promise<Imported> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' }
  const sending = request(url, { method: 'POST', headers })
  const answered = new Promise<Imported>((resolve, reject) => {
    sending.on('error', reject)
    sending.on('response', async (response) => {
      const text = (await response.toArray().catch(() => [])).join('')
      if (response.statusCode === 200) resolve(JSON.parse(text))
      else reject(new Error(`the import answered ${response.statusCode}: ${text}`))
    })
  })
  const [imported] = await Promise.all([answered, pipeline(Readable.from(blocks), sending)])
  return imported
}

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1000
}

function send(message: GeneratorMessage): void {
  process.send?.(message)
}

process.on('message', (task: GeneratorTask) => {
  run(task).then(
    () => process.disconnect(),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
