import { auditEventNames, GetAuditLogsQuery } from '@godwit/contract'
import { readEvents } from '../../apps/server/src/audit/read-events.ts'
import type { Deps } from '../../apps/server/src/deps.ts'
import type { LoadedLog } from './load-events.ts'

type Filters = { appId?: string; actorId?: string; operation?: string }
type Dates = { startDate?: string; endDate?: string }
type Row = { name: string; timesMs: number[]; found: number }

/** Pages of 100 through the function that answers the request, without HTTP: SQL, reading of the rows, cursor. */
export async function measurePages(deps: Deps, input: { log: LoadedLog; pages: number }): Promise<void> {
  const { log, pages } = input
  const { count } = await deps.db
    .selectFrom('audit_chains')
    .select('last_seq as count')
    .where('organization_id', '=', log.organizationId)
    .executeTakeFirstOrThrow()
  console.log(
    `\n${count} events in one organization; ${pages} pages of 100 for each kind of page and set of filters.\n`,
  )
  console.log('| filters | page | events | p50 ms | p99 ms | max ms |')
  console.log('|---|---|---:|---:|---:|---:|')
  const all: number[] = []
  for (const [filterName, filters] of listFilters(log)) {
    for (const [pageName, dates, isDeep] of listPages(log)) {
      for (const order of ['desc', 'asc'] as const) {
        const { timesMs, found } = await measure(deps, { log, pages, filters, dates, order, depth: isDeep ? 10 : 0 })
        all.push(...timesMs)
        const figures = [percentile(timesMs, 50), percentile(timesMs, 99), Math.max(...timesMs)]
        console.log(
          `| ${[filterName, `${order} ${pageName}`, found, ...figures.map((ms) => ms.toFixed(1))].join(' | ')} |`,
        )
      }
    }
  }
  const figures = [percentile(all, 50), percentile(all, 99), Math.max(...all)].map((ms) => ms.toFixed(1))
  console.log(`| all of them | ${all.length} pages | | ${figures.join(' | ')} |`)
}

/** Every set of filters: of what is frequent, of what is rare, of one of each, and of what has no event at all. */
function listFilters({ appIds, actorIds }: LoadedLog): [string, Filters][] {
  const [often, seldom] = [pick(0), pick(-1)]
  const rows: [string, Filters][] = [['none', {}]]
  for (const names of [['appId'], ['actorId'], ['operation'], ['appId', 'actorId'], ['appId', 'operation']] as const) {
    rows.push(
      [`${names.join(' + ')}, frequent`, choose(names, often)],
      [`${names.join(' + ')}, rare`, choose(names, seldom)],
    )
  }
  const pair = ['actorId', 'operation'] as const
  rows.push([`${pair.join(' + ')}, frequent`, choose(pair, often)], [`${pair.join(' + ')}, rare`, choose(pair, seldom)])
  rows.push(['all three, frequent', often], ['all three, rare', seldom])
  rows.push(['all three, rare app', { ...often, appId: seldom.appId }])
  rows.push(['all three, rare actor', { ...often, actorId: seldom.actorId }])
  rows.push(['all three, rare operation', { ...often, operation: seldom.operation }])
  rows.push(['an app that has no events', { appId: 'none' }])
  rows.push(['frequent actor + operation, an app that has no events', { ...often, appId: 'none' }])
  return rows

  function pick(index: number) {
    const [appId = '', actorId = '', operation = ''] = [appIds.at(index), actorIds.at(index), auditEventNames.at(index)]
    return { appId, actorId, operation }
  }
}

function choose(names: readonly (keyof Filters)[], from: Filters): Filters {
  return Object.fromEntries(names.map((name) => [name, from[name]]))
}

/** `deep`: after a cursor in the middle of the log. */
function listPages({ start, end }: LoadedLog): [string, Dates, boolean][] {
  const at = (part: number) => new Date(start.getTime() + (end.getTime() - start.getTime()) * part).toISOString()
  return [
    ['first', {}, false],
    ['deep', {}, true],
    ['in a month', { startDate: at(0.4), endDate: at(0.48) }, false],
    ['in an hour', { startDate: at(0.7), endDate: new Date(Date.parse(at(0.7)) + 3600_000).toISOString() }, false],
    ['up to the middle', { endDate: at(0.5) }, false],
    ['from the middle', { startDate: at(0.5) }, false],
  ]
}

async function measure(
  deps: Deps,
  input: { log: LoadedLog; pages: number; filters: Filters; dates: Dates; order: 'asc' | 'desc'; depth: number },
): Promise<Omit<Row, 'name'>> {
  const { log, pages, filters, dates, order, depth } = input
  const { organizationId } = log
  const first = { order, per_page: '100', ...filters, ...dates }
  let cursor = depth === 0 ? undefined : await findMiddle(deps, log)
  const timesMs: number[] = []
  let found = 0
  for (let page = 0; page < pages; page += 1) {
    const query = GetAuditLogsQuery.parse(cursor === undefined ? first : { ...first, cursor })
    const startedAt = performance.now()
    const { data, next_cursor } = await readEvents(deps, { organizationId, query })
    timesMs.push(performance.now() - startedAt)
    found += data.length
    // A first page is read again and again, a deep one walks on.
    if (depth > 0 && next_cursor !== undefined) cursor = next_cursor
  }
  return { timesMs, found: found / pages }
}

async function findMiddle(deps: Deps, { organizationId, start, end }: LoadedLog): Promise<string | undefined> {
  const middle = new Date((start.getTime() + end.getTime()) / 2).toISOString()
  const query = GetAuditLogsQuery.parse({ order: 'asc', per_page: '1', startDate: middle })
  return (await readEvents(deps, { organizationId, query })).next_cursor
}

function percentile(values: number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN
}
