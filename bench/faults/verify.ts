import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckResponse } from '@godwit/contract'
import type { Client } from '@godwit/sdk'
import pg from 'pg'
import { listClients } from '../ingest/list-clients.ts'
import { describeAnswer, type Place } from './answer-book.ts'
import { arch, platforms } from './devices.ts'
import type { Ledger, LedgerRelease } from './ledger.ts'
import { hashOf } from './publisher.ts'

/** What the service no longer knows of what it had acknowledged, and what it tells that is not so. */
export type Findings = { lost: string[]; wrong: string[]; lostChecks: number; excusedChecks: number }

/** How long what devices sent may take to be counted. */
const usualPatienceMs = 120_000

type Subject = { api: Client; baseUrl: string; databaseUrl: string; ledger: Ledger }

/** Asks for everything that was acknowledged, byte by byte and device by device. */
export async function verifyLedger(subject: Subject, patienceMs = usualPatienceMs): Promise<Findings> {
  const published = await verifyPublished(subject)
  const counted = await waitUntilCounted(subject, patienceMs)
  return {
    ...counted,
    lost: [...published.lost, ...counted.lost],
    wrong: [...published.wrong, ...counted.wrong],
  }
}

async function verifyPublished({ api, baseUrl, ledger }: Subject): Promise<Pick<Findings, 'lost' | 'wrong'>> {
  const lost: string[] = []
  const wrong: string[] = []
  const { apps } = await api.listApps()
  for (const [appId, name] of ledger.apps) {
    if (!apps.some((app) => app.app_id === appId && app.display_name === name)) lost.push(`app ${name}`)
  }
  for (const release of ledger.releases.values()) {
    const { appId, releaseId, version } = release
    const found = await api.getRelease({ params: { appId, releaseId } }).catch(() => undefined)
    if (found?.release.version !== version) {
      lost.push(`release ${version}`)
      continue
    }
    lost.push(...(await findLostPatches(api, ledger, release)))
    lost.push(...(await findLostUploads(api, ledger, release)))
    wrong.push(...(await findWrongOffers(baseUrl, ledger, release)))
  }
  return { lost, wrong }
}

async function findLostPatches(api: Client, ledger: Ledger, { key, appId, releaseId, version }: LedgerRelease) {
  const { patches } = await api.listReleasePatches({ params: { appId, releaseId } })
  return ledger.answers.read(key).flatMap((known) => {
    const name = `patch ${known.number} of ${version}`
    const found = patches.find(({ id }) => id === known.id)
    if (found === undefined) return [name]
    const problems: string[] = []
    if ((found.channel ?? null) !== known.channel) problems.push(`${name}: its promotion`)
    if (found.is_rolled_back !== known.isRolledBack) problems.push(`${name}: its rollback`)
    for (const artifact of known.artifacts) {
      const isThere = found.artifacts.some(
        ({ platform, hash }) => platform === artifact.platform && hash === artifact.hash,
      )
      if (!isThere) problems.push(`${name}: its artifact for ${artifact.platform}`)
    }
    return problems
  })
}

async function findLostUploads(api: Client, ledger: Ledger, { key, appId, releaseId, version }: LedgerRelease) {
  const uploads = ledger.uploads.filter((upload) => upload.key === key)
  if (uploads.length === 0) return []
  const { artifacts } = await api.listReleaseArtifacts({ params: { appId, releaseId } })
  const lost: string[] = []
  // Also those whose last answer was never heard: what is listed is whole.
  for (const { url, hash, arch: name } of artifacts) {
    const sha256 = await hashDownload(url)
    if (sha256 !== hash) lost.push(`upload ${name} of ${version}: ${sha256}`)
  }
  for (const upload of uploads) {
    const found = artifacts.find((artifact) => artifact.arch === upload.arch && artifact.platform === upload.platform)
    if (found?.hash !== upload.sha256) lost.push(`upload ${upload.arch} of ${version}: ${found?.hash ?? 'not listed'}`)
  }
  return lost
}

/** Asks as a device of each place, and downloads what it is offered. */
async function findWrongOffers(baseUrl: string, ledger: Ledger, { key, appId, version }: LedgerRelease) {
  const wrong: string[] = []
  for (const platform of platforms) {
    const place: Place = { version, channel: 'stable', platform, arch }
    const sentMs = performance.now()
    const body = JSON.stringify({ app_id: appId, release_version: version, channel: 'stable', platform, arch })
    const response = await fetch(`${baseUrl}/api/v1/patches/check`, { method: 'POST', body })
    const answer = (await response.json()) as PatchCheckResponse
    const told = describeAnswer(answer)
    const right = ledger.answers.listRight(key, place, sentMs, performance.now())
    if (!right.includes(told)) wrong.push(`${version}, ${platform}: ${told} instead of ${right.join(' or ')}`)
    if (answer.patch === undefined) continue
    const sha256 = await hashDownload(answer.patch.download_url)
    if (sha256 !== answer.patch.hash) wrong.push(`${version}, ${platform}: the bytes of the offer are ${sha256}`)
  }
  return wrong
}

async function hashDownload(url: string): Promise<string> {
  const response = await fetch(url)
  const bytes = new Uint8Array(await response.arrayBuffer())
  return response.status === 200 ? hashOf(bytes) : `HTTP ${response.status}`
}

/** Until all is counted, or has had time enough to be. */
async function waitUntilCounted(subject: Subject, patienceMs: number): Promise<Findings> {
  const deadlineMs = performance.now() + patienceMs
  for (;;) {
    const findings = await compareCounts(subject)
    const isRight = findings.lost.length === 0 && findings.wrong.length === 0
    if (isRight || performance.now() > deadlineMs) return findings
    await sleep(500)
  }
}

async function compareCounts({ api, databaseUrl, ledger }: Subject): Promise<Findings> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const known = await listClients(client)
    const stored = await client.query<{ client_id: string; times: number }>(
      'select client_id, count(*)::int as times from device_events group by client_id',
    )
    const times = new Map(stored.rows.map((row) => [row.client_id, row.times]))
    const lost: string[] = []
    const wrong: string[] = []
    const lostEvents = ledger.events.filter(({ clientId }) => !times.has(clientId)).length
    if (lostEvents > 0) lost.push(`${lostEvents} events that were answered`)
    const lostImports = ledger.imported.filter(({ clientId }) => !known.has(clientId)).length
    if (lostImports > 0) lost.push(`${lostImports} imported devices`)
    const missing = ledger.checks.filter(({ clientId }) => !known.has(clientId))
    const excused = missing.filter(({ atMs }) => ledger.mayBeLost(atMs)).length
    const lostChecks = missing.length - excused
    if (lostChecks > 0) lost.push(`the observations of ${lostChecks} checks`)
    const twice = [...times].filter(([, count]) => count > 1).length
    if (twice > 0) wrong.push(`${twice} events are stored twice`)
    for (const [appId, name] of ledger.apps) {
      const problems = await compareMetrics(api, ledger, appId, known).catch((error: Error) => [error.message])
      wrong.push(...problems.map((problem) => `metrics of ${name}: ${problem}`))
    }
    return { lost, wrong, lostChecks, excusedChecks: excused }
  } finally {
    await client.end()
  }
}

/** The figures that the service shows of an app, beside what was sent. */
async function compareMetrics(api: Client, ledger: Ledger, appId: string, known: Set<string>): Promise<string[]> {
  const wrong: string[] = []
  const ofApp = (all: { clientId: string; appId: string }[]) => all.filter((one) => one.appId === appId)
  const certain = [...ofApp(ledger.checks), ...ofApp(ledger.events), ...ofApp(ledger.imported)]
  const sent = [...certain, ...ofApp(ledger.uncertainChecks), ...ofApp(ledger.uncertainEvents)]
  const devices = sent.filter(({ clientId }) => known.has(clientId)).length
  const { unique_users } = await api.getUniqueUsers({ params: { appId } })
  if (unique_users !== devices) wrong.push(`unique users: ${unique_users} instead of ${devices}`)
  const { count: total } = await api.getPatchInstalls({ params: { appId } })
  const least = ofApp(ledger.events).length
  const most = least + ofApp(ledger.uncertainEvents).length
  if (total < least || total > most) wrong.push(`installs: ${total} instead of ${least} to ${most}`)
  return wrong
}
