import { parseArgs } from 'node:util'
import type { ReleasePlatform } from '@godwit/contract'
import { isPlatform } from './devices.ts'
import type { Share } from './random.ts'
import type { PlannedPatch } from './write-import.ts'

export const help = `Plays the devices of one app, as real updaters behave.

  npm run simulate -- --url http://localhost:8080 --app <app_id> [options]
  npm run simulate -- --import-file observations.ndjson --patches 1@day3,2@day10 [options]

Devices
  --devices 10000                how many
  --releases 1.0.0+1:60,1.1.0+2:40
                                 release versions and how many devices have each; the server must have them
  --platforms android:70,ios:30  platforms likewise; each with its usual arches
  --channel stable
  --launches-per-day 3           mean of all devices; a launch is a patch check
  --failure-rate 0.01            part of the installs that fail to boot
  --old-updaters 0.02            part of the devices whose updater sends no client_id with a check; half of them
                                 send the patch_number instead
  --seed 1                       the same seed plays the same devices, launches and failures

Time
  --days 28                      length of the period
  --speed max                    simulated seconds in a real one, or max: as fast as the server answers. At 1 the
                                 period begins now and the devices report the real time. At any other speed it ends
                                 now, and they report the simulated time; a server replaces times before the last
                                 32 days. Checks carry no time: the server counts them when they arrive, so that only
                                 --speed 1 or --import-file fills the hours and days of the metrics.
                                 Checks a second: devices × launches per day × speed / 86400.

Server
  --url, --app                   the server and the app
  --connections 32               launches at work at a time
  --download                     download what is offered, instead of pretending to

File
  --import-file <file>           no server: writes what one would have recorded, one observation a line, and
                                 says how to import it; --url and --app are for this command alone
  --patches 1@day3,2@day10-day12 with --import-file: patch 1 from day 3 on, patch 2 rolled back on day 12; the days
                                 count from 0

  --json                         the summary as JSON on standard output, all else on standard error

Ctrl-C stops with the summary.`

/** How an import file gets to a server. */
export function describeImport({ url, appId, importFile }: Options): string {
  return `To import it:
  curl --fail-with-body -X POST -H "Authorization: Bearer $GODWIT_API_KEY" -H "Content-Type: application/x-ndjson" \\
    -T ${importFile} ${url}/api/v1/apps/${appId || '<app_id>'}/activity/import`
}

export type Options = ReturnType<typeof readOptions>

const number = (text: string, name: string, isFine: (value: number) => boolean, what: string): number => {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (!isFine(value)) throw new Error(`--${name} must be ${what}`)
  return value
}
const isCount = (value: number) => Number.isInteger(value) && value >= 1
const isPositive = (value: number) => Number.isFinite(value) && value > 0
const isPart = (value: number) => value >= 0 && value <= 1

export function readOptions(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', default: false },
      url: { type: 'string', default: 'http://localhost:8080' },
      app: { type: 'string' },
      devices: { type: 'string', default: '10000' },
      days: { type: 'string', default: '28' },
      speed: { type: 'string', default: 'max' },
      'launches-per-day': { type: 'string', default: '3' },
      releases: { type: 'string', default: '1.0.0+1:60,1.1.0+2:40' },
      platforms: { type: 'string', default: 'android:70,ios:30' },
      channel: { type: 'string', default: 'stable' },
      'failure-rate': { type: 'string', default: '0.01' },
      'old-updaters': { type: 'string', default: '0.02' },
      seed: { type: 'string', default: '1' },
      connections: { type: 'string', default: '32' },
      download: { type: 'boolean', default: false },
      'import-file': { type: 'string' },
      patches: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
    },
  })
  const importFile = values['import-file']
  if (!values.help && importFile === undefined && values.app === undefined) {
    throw new Error('--app <app_id> is needed, or --import-file <file>')
  }
  if (importFile === undefined && values.patches !== '') throw new Error('--patches goes with --import-file')
  const isSeed = (value: number) => Number.isInteger(value) && value >= 0 && value < 2 ** 32
  return {
    isHelp: values.help,
    isJson: values.json,
    url: readUrl(values.url),
    appId: values.app ?? '',
    channel: values.channel,
    speed:
      values.speed === 'max' ? Number.POSITIVE_INFINITY : number(values.speed, 'speed', isPositive, 'above 0, or max'),
    connections: number(values.connections, 'connections', isCount, 'a whole number from 1'),
    isDownloading: values.download,
    importFile,
    patches: readPatches(values.patches),
    devices: number(values.devices, 'devices', (value) => isCount(value) && value <= 1e8, 'from 1 to 100,000,000'),
    days: number(values.days, 'days', (value) => isPositive(value) && value <= 3650, 'above 0 and at most 3650'),
    launchesPerDay: number(values['launches-per-day'], 'launches-per-day', isPositive, 'above 0'),
    failureRate: number(values['failure-rate'], 'failure-rate', isPart, 'from 0 to 1'),
    oldUpdaters: number(values['old-updaters'], 'old-updaters', isPart, 'from 0 to 1'),
    seed: number(values.seed, 'seed', isSeed, 'a whole number from 0 to 4294967295'),
    releases: readShares(values.releases, 'releases'),
    platforms: readShares(values.platforms, 'platforms').map(({ value, weight }) => ({
      value: readPlatform(value),
      weight,
    })),
  }
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new Error('--url must begin with http:// or https://')
  return text.replace(/\/+$/, '')
}

/** `a:60,b:40`; without a weight, 1. */
export function readShares(text: string, name: string): Share<string>[] {
  const shares = text.split(',').map((part) => {
    const [, value, weight = '1'] = /^([^:]+)(?::(.*))?$/.exec(part.trim()) ?? []
    if (value === undefined) throw new Error(`--${name} must look like a:60,b:40`)
    return { value, weight: number(weight, name, isPositive, 'names with weights above 0, such as a:60,b:40') }
  })
  if (shares.length > 255) throw new Error(`--${name} must be at most 255`)
  return shares
}

function readPlatform(text: string): ReleasePlatform {
  if (!isPlatform(text)) throw new Error(`--platforms must be android, ios, linux, macos or windows, not ${text}`)
  return text
}

export function readPatches(text: string): PlannedPatch[] {
  if (text === '') return []
  return text.split(',').map((part) => {
    const [, patch, offered, rolledBack] = /^([1-9]\d{0,5})@day(\d{1,4})(?:-day(\d{1,4}))?$/.exec(part.trim()) ?? []
    if (patch === undefined) throw new Error('--patches must look like 1@day3,2@day10-day12')
    const rolledBackDay = rolledBack === undefined ? undefined : Number(rolledBack)
    return { number: Number(patch), offeredDay: Number(offered), rolledBackDay }
  })
}
