import { createDeviceApi, type DeviceApi } from './device-api.ts'
import { describeImport, help, type Options, readOptions } from './options.ts'
import { runOnline } from './run-online.ts'
import { createSimulation, type Simulation } from './simulation.ts'
import { formatProgress, formatSummary, summarize } from './summary.ts'
import { writeImport } from './write-import.ts'

const progressMs = 1000
const daySeconds = 86_400

try {
  const options = readOptions(process.argv.slice(2))
  if (options.isHelp) console.log(help)
  else await simulate(options)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

async function simulate(options: Options): Promise<void> {
  const stopping = new AbortController()
  // A second one ends the process, in case that something hangs.
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort())
  const simulation = createSimulation({ ...options, startSeconds: chooseStart(options) })
  const startedAtMs = performance.now()
  const stopShowing = showProgress(simulation)
  try {
    await play(simulation, options, stopping.signal)
  } finally {
    stopShowing()
  }
  const summary = summarize(simulation.population, simulation.counts, (performance.now() - startedAtMs) / 1000)
  if (options.isJson) console.log(JSON.stringify(summary))
  else console.log(`\n${formatSummary(summary)}`)
  if (options.importFile !== undefined) console.error(`\n${describeImport(options)}`)
}

/** Unix seconds. */
function chooseStart({ days, speed, importFile }: Options): number {
  const now = Math.floor(Date.now() / 1000)
  return speed === 1 && importFile === undefined ? now : now - Math.ceil(days * daySeconds)
}

async function play(simulation: Simulation, options: Options, signal: AbortSignal): Promise<void> {
  const { importFile, patches } = options
  if (importFile !== undefined) return await writeImport(simulation, { file: importFile, patches, signal })
  const api = createDeviceApi(options.url, options.connections)
  try {
    await knock(api, options)
    await runOnline(simulation, { ...options, api, signal })
  } finally {
    api.close()
  }
}

/** A wrong address is told at once. Without a client_id the server records no device. */
async function knock(api: DeviceApi, { url, appId: app_id, channel }: Options): Promise<void> {
  const check = { app_id, channel, release_version: '0', platform: 'android', arch: 'aarch64' }
  await api.check(check).catch((error: unknown) => {
    throw new Error(`no patch check was answered at ${url}: ${error instanceof Error ? error.message : error}`)
  })
}

/** On standard error, so that standard output has the summary alone. */
function showProgress(simulation: Simulation): () => void {
  let last = structuredClone(simulation.counts)
  const timer = setInterval(() => {
    const { population, counts, atSeconds } = simulation
    console.error(formatProgress(population, counts, last, atSeconds / daySeconds))
    last = structuredClone(counts)
  }, progressMs)
  return () => clearInterval(timer)
}
