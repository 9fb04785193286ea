import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parser } from '@prometheus-io/lezer-promql'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { readConfig } from '../../src/config.ts'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { openService } from '../../src/open-service.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'
import { readMetrics } from './read-metrics.ts'

const folder = new URL('../../../../deploy/monitoring/', import.meta.url)
const operations = new URL('../../../../docs/operations.md', import.meta.url)

const Rules = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.object({ severity: z.enum(['critical', 'warning']) }),
          annotations: z.object({ summary: z.string(), runbook: z.string() }),
        }),
      ),
    }),
  ),
})
const Panel = z.object({
  type: z.enum(['row', 'timeseries', 'stat']),
  title: z.string(),
  gridPos: z.object({ h: z.number(), w: z.number(), x: z.number(), y: z.number() }),
  targets: z.array(z.object({ expr: z.string() })).default([]),
})
const Dashboard = z.object({
  title: z.literal('Godwit'),
  annotations: z.object({ list: z.array(z.object({ expr: z.string() })) }),
  panels: z.array(Panel),
})

const read = async (name: string) => await readFile(new URL(name, folder), 'utf8')
const readRules = async () => Rules.parse(parse(await read('alerts.yml'))).groups.flatMap(({ rules }) => rules)
const readDashboard = async () => Dashboard.parse(JSON.parse(await read('grafana-dashboard.json')))

/** The metrics and labels that an expression names. Throws when it is no PromQL. */
function readExpression(expression: string): { metrics: string[]; labels: string[] } {
  // Grafana puts durations and names in the place of its variables.
  const text = expression.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, 'x')
  const metrics: string[] = []
  const labels: string[] = []
  parser.parse(text).iterate({
    enter: (node) => {
      if (node.type.isError) throw new Error(`no PromQL at ${node.from}: ${text}`)
      const name = text.slice(node.from, node.to)
      if (node.name === 'Identifier' && node.node.parent?.name === 'VectorSelector') metrics.push(name)
      if (node.name === 'LabelName') labels.push(name)
    },
  })
  return { metrics, labels }
}

let database: TestDatabase
let dataDir: string
let service: Awaited<ReturnType<typeof openService>>
let baseUrl: string
/** What a scrape has: the metrics of the answer, the series of histograms, and what Prometheus itself adds. */
let known: { names: Set<string>; labels: Set<string> }

/** A whole process, with all that has metrics only where it is set. */
beforeAll(async () => {
  database = await createTestDatabase()
  dataDir = await mkdtemp(join(tmpdir(), 'godwit-monitoring-'))
  const { connectionString } = database
  const port = String(await findFreePort())
  const databases = { DATABASE_URL: connectionString, DATABASE_REPLICA_URL: connectionString }
  const config = readConfig({ ...databases, HOST: '127.0.0.1', PORT: port, GODWIT_DATA_DIR: dataDir })
  const log = pino({ level: 'silent' })
  service = await openService({ config, log, connectionString, signal: AbortSignal.timeout(20_000) })
  baseUrl = `http://127.0.0.1:${port}`
  await fetch(`${baseUrl}/healthz`)
  const families = await readMetrics(baseUrl)
  const samples = [...families.values()].flatMap((family) => [...family.samples.keys()])
  known = {
    names: new Set(['up', ...samples.map((sample) => sample.replace(/\{.*/, ''))]),
    labels: new Set(['job', 'instance', ...samples.flatMap((sample) => sample.match(/\w+(?==")/g) ?? [])]),
  }
})
afterAll(async () => {
  await service?.close()
  await database?.drop()
  await rm(dataDir, { recursive: true, force: true })
})

function expectKnown(expressions: string[]): void {
  const read = expressions.map(readExpression)
  expect(read.every(({ metrics }) => metrics.length > 0)).toBe(true)
  expect(read.flatMap(({ metrics }) => metrics).filter((name) => !known.names.has(name))).toEqual([])
  expect(read.flatMap(({ labels }) => labels).filter((name) => !known.labels.has(name))).toEqual([])
}

describe('the alerts', () => {
  it('ask for metrics and labels that the server has', async () => {
    const rules = await readRules()
    expect(rules.length).toBeGreaterThan(10)
    expectKnown(rules.map(({ expr }) => expr))
  })

  it('each have a test, and a section of the operations guide that says what to do', async () => {
    const [rules, tests, guide] = await Promise.all([
      readRules(),
      read('alerts.test.yml'),
      readFile(operations, 'utf8'),
    ])
    for (const { alert, annotations } of rules) {
      expect(tests).toContain(`alertname: ${alert}\n`)
      expect(annotations.runbook).toBe(`docs/operations.md#${alert.toLowerCase()}`)
      expect(guide).toContain(`\n#### ${alert}\n`)
    }
    const sections = [...guide.matchAll(/^#### (Godwit\w+)$/gm)].map(([, name]) => name)
    expect(sections.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted())
  })

  const hasPromtool = (process.env.PATH ?? '').split(':').some((dir) => existsSync(join(dir, 'promtool')))
  it.runIf(hasPromtool)('are quiet while all is well and tell in time, by promtool', async () => {
    const run = (...args: string[]) => promisify(execFile)('promtool', args, { cwd: fileURLToPath(folder) })
    expect((await run('check', 'rules', 'alerts.yml')).stdout).toContain('SUCCESS')
    expect((await run('test', 'rules', 'alerts.test.yml')).stdout).toContain('SUCCESS')
  })
})

describe('the dashboard', () => {
  it('asks for metrics and labels that the server has', async () => {
    const { panels, annotations } = await readDashboard()
    const targets = panels.flatMap((panel) => panel.targets)
    expect(targets.length).toBeGreaterThan(30)
    expectKnown([...targets, ...annotations.list].map(({ expr }) => expr))
  })

  it('has panels that lie beside each other, not on each other', async () => {
    const { panels } = await readDashboard()
    const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h * w }, (_, index) => `${x + (index % w)}/${y + Math.floor(index / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
  })

  it('shows every metric of ours', async () => {
    const { panels } = await readDashboard()
    const shown = panels.flatMap((panel) => panel.targets).flatMap(({ expr }) => readExpression(expr).metrics)
    const families = [...(await readMetrics(baseUrl)).keys()].filter((name) => name.startsWith('godwit_'))
    const isShown = (family: string) => shown.some((name) => name.replace(/_(bucket|count|sum)$/, '') === family)
    expect(families.filter((family) => !isShown(family))).toEqual([])
  })
})

describe('the operations guide', () => {
  it('names every metric of ours', async () => {
    const guide = await readFile(operations, 'utf8')
    const section = guide.slice(guide.indexOf('## What to watch'), guide.indexOf('### Alerts'))
    const families = [...(await readMetrics(baseUrl)).keys()].filter((name) => name.startsWith('godwit_'))
    // A row names a metric in full, and others by the end in which they differ from it.
    const rows = section.split('\n').map((row) => ({
      names: [...row.matchAll(/`(godwit_\w+)`/g)].map(([, name = '']) => name),
      ends: [...row.matchAll(/`…(_\w+)`/g)].map(([, end = '']) => end),
    }))
    const isNamed = (family: string) =>
      rows.some(
        ({ names, ends }) =>
          names.includes(family) ||
          ends.some((end) =>
            names.some((name) => family.endsWith(end) && name.startsWith(`${family.slice(0, -end.length)}_`)),
          ),
      )
    expect(families.filter((family) => !isNamed(family))).toEqual([])
  })
})
