import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { PatchCheckResponse } from '@godwit/contract'
import { atTheEnd, runAndClose } from '../closing.ts'
import { publishPatches } from './publish-patches.ts'
import { ratio, summarize, takeTurns } from './rounds.ts'
import { adminKey, startBareServer, startGodwit } from './servers.ts'

/**
 * Checks per second of the device door, beside a bare node:http server that parses the same body and answers the same
 * bytes. The two take turns within one run, so that whatever else the machine does hits both. Nothing here fails on a
 * time: a figure is for a person to read.
 */
const rounds = 5
const roundMs = 2500
const warmUpMs = 2000
const connections = 50
const devices = 20_000
const kinds = ['kept alive', 'new'] as const

await runAndClose(bench)

async function bench(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'godwit-bench-'))
  atTheEnd(() => rm(dataDir, { recursive: true, force: true }))
  const godwit = await startGodwit(dataDir)
  atTheEnd(godwit.stop)
  const baseUrl = `http://127.0.0.1:${godwit.port}`
  const check = await publishPatches(baseUrl, adminKey)
  const bodies = Array.from({ length: devices }, () => JSON.stringify({ ...check, client_id: randomUUID() }))
  const answer = await ask(baseUrl, bodies[0] ?? '')
  const bare = await startBareServer(answer)
  atTheEnd(bare.stop)
  const generator = fork(new URL('./load.ts', import.meta.url).pathname)
  atTheEnd(async () => generator.kill())

  const contestants = [
    { name: 'bare node:http', server: bare, bodies },
    { name: 'Godwit', server: godwit, bodies },
  ]
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, ${connections} connections,`)
  console.log(
    `medians of ${rounds} alternating rounds of ${roundMs / 1000} s. The answer has ${answer.length} bytes.\n`,
  )
  console.log('| connection | server | checks/s | ratio | p50 ms | p99 ms | ratio | server CPU µs/check |')
  console.log('|---|---|---:|---:|---:|---:|---:|---:|')
  for (const connection of kinds) {
    const options = { connection, connections, rounds, roundMs, warmUpMs }
    const samples = await takeTurns(generator, contestants, options)
    const [base, ...others] = contestants.map(({ name }) => ({ name, ...summarize(samples.get(name) ?? []) }))
    for (const row of base === undefined ? [] : [base, ...others]) {
      const figures = [row.rate.toFixed(0), ratio(row.rate, base?.rate), row.p50Ms.toFixed(2), row.p99Ms.toFixed(2)]
      const more = [ratio(row.p99Ms, base?.p99Ms), row.serverCpuUs.toFixed(1)]
      console.log(`| ${[connection, row.name, ...figures, ...more].join(' | ')} |`)
    }
  }
}

/** The answer that both servers give. It must be an offer: answering that there is none would be easier. */
async function ask(baseUrl: string, body: string): Promise<string> {
  const response = await fetch(`${baseUrl}/api/v1/patches/check`, { method: 'POST', body })
  const answer = await response.text()
  if (!PatchCheckResponse.parse(JSON.parse(answer)).patch_available) throw new Error(`no patch is offered: ${answer}`)
  return answer
}
