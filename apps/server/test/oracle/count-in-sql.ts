import pg from 'pg'
import type { Counted, Counts, Span, Window } from './counts.ts'
import type { Request } from './requests.ts'

/** Only ever temporary: the tables and views go with the connection. */
const definitions = `
  create temporary table requests (
    seq bigint primary key,
    kind text not null,
    client_id text not null,
    platform text not null,
    arch text not null,
    release_version text not null,
    received_at timestamptz not null,
    told_at timestamptz,
    running bigint,
    type text,
    patch bigint,
    rolled_back bigint[] not null
  );
  create index on requests (client_id, release_version);

  -- A repeated event, or line of an import, counts once.
  create temporary view taken as
    select * from requests where kind = 'check'
    union all
    (select distinct on (client_id, release_version, patch, type, told_at) *
      from requests where kind = 'event'
      order by client_id, release_version, patch, type, told_at, seq)
    union all
    (select distinct on (client_id, release_version, running, platform, arch, told_at) *
      from requests where kind = 'import'
      order by client_id, release_version, running, platform, arch, told_at, seq);

  create temporary view observations_now as
    select seq, client_id, platform, nullif(release_version, '') as release_version,
      case
        when told_at is null then received_at
        when kind = 'import' then told_at
        when told_at > received_at + interval '24 hours' or told_at < received_at - interval '32 days' then received_at
        else told_at
      end as time,
      case
        when type = '__patch_install__' then patch
        when running is not null then running
        when kind = 'import' then 0
        else coalesce(
          (select install.patch from taken install
            where install.type = '__patch_install__'
              and (install.client_id, install.release_version) = (taken.client_id, taken.release_version)
              and install.seq < taken.seq
              and install.patch <> all (taken.rolled_back)
            order by install.seq desc limit 1),
          0)
      end as patch
    from taken;

  create temporary view events_now as
    select client_id, release_version, patch, type, received_at as time from taken where kind = 'event';`

const fill = `
  drop table if exists observations;
  drop table if exists events;
  create temporary table observations as select * from observations_now;
  create temporary table events as select * from events_now;`

export type SqlCounts = Counts & {
  /** From now on, these are the rows. */
  load: (requests: Request[]) => Promise<void>
  end: () => Promise<void>
}

/** The definition of the metrics once more, as one would write it for rows in PostgreSQL. */
export async function countInSql(connectionString: string): Promise<SqlCounts> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query("set timezone = 'UTC'")
  await client.query(definitions)
  const select = async <Row extends pg.QueryResultRow>(text: string, values: unknown[]) =>
    (await client.query<Row>(text, values)).rows

  /** Of rows that have a time and a value to group by. `measure` is an aggregate. */
  const count = async <Value>(rows: string, measure: string, window: Window, values: unknown[]) => {
    const found = await select<{ value: Value; is_all: boolean; period_ms: string | null; count: number }>(
      `with rows as (${rows}), buckets as (${buckets})
       select value, grouping(value) = 1 as is_all, extract(epoch from period) * 1000 as period_ms, ${measure}::int as count
       from rows left join buckets on rows.time >= buckets.start and rows.time < buckets.stop
       where rows.time >= $1 and rows.time < $2
       group by grouping sets ((), (value), (period), (value, period))
       having grouping(period) = 1 or period is not null
       order by value collate "C" nulls first, period`,
      [...windowValues(window), ...values],
    )
    const counted: Counted<Value> = { count: 0, series: [], groups: [] }
    for (const { value, is_all, period_ms, count } of found.toSorted(totalsFirst)) {
      if (period_ms !== null) {
        const series = is_all ? counted.series : counted.groups.find((group) => group.value === value)?.series
        series?.push({ periodMs: Number(period_ms), count })
      } else if (is_all) counted.count = count
      else counted.groups.push({ value, count, series: [] })
    }
    return counted
  }

  return {
    load: async (requests) => {
      await client.query('truncate requests')
      await client.query(
        `insert into requests
         select row_number() over (), kind, client_id, platform, arch, coalesce(release_version, ''),
           to_timestamp(received_ms / 1000.0), to_timestamp(told_ms / 1000.0), running, type, patch,
           (select coalesce(array_agg(number::bigint), '{}') from jsonb_array_elements_text(rolled_back) number)
         from jsonb_to_recordset($1) as row (
           kind text, client_id text, platform text, arch text, release_version text, received_ms numeric,
           told_ms numeric, running bigint, type text, patch bigint, rolled_back jsonb)`,
        [JSON.stringify(requests.map(toRow))],
      )
      await client.query(fill)
    },
    end: () => client.end(),
    versions: async ({ sinceMs }) =>
      await select(
        `with latest as (
           select distinct on (client_id) client_id, time, release_version from observations
           order by client_id, time desc, seq desc
         )
         select release_version as release, count(*)::int as devices from latest where time >= $1
         group by release_version order by devices desc, release_version collate "C" nulls last`,
        [new Date(sinceMs)],
      ),
    adoption: async ({ release, patches, window }) => {
      const rows = await select<{ patch: number; period_ms: string | null; devices: number; target: number }>(
        `with buckets as (${buckets} union all select null, $1, $2 where $3::text is null),
         patches as (select * from jsonb_to_recordset($4) as patch (number bigint, platforms jsonb))
         select patches.number::int as patch, extract(epoch from period) * 1000 as period_ms,
           count(distinct client_id) filter (where patch >= patches.number)::int as devices,
           count(distinct client_id) filter (where patches.platforms ? platform)::int as target
         from patches cross join buckets
         left join observations on release_version = $5 and time >= buckets.start and time < buckets.stop
         group by patches.number, period order by patches.number, period`,
        [...windowValues(window), JSON.stringify(patches), release],
      )
      return patches.map(({ number }) =>
        rows
          .filter(({ patch }) => patch === number)
          .map(({ period_ms, ...point }) => ({
            periodMs: period_ms === null ? undefined : Number(period_ms),
            devices: point.devices,
            target: point.target,
          })),
      )
    },
    devices: async ({ window, groupBy }) => {
      const column = groupBy ?? 'null::text'
      const counted = await count<string | null>(
        `select time, client_id, ${column} as value from observations`,
        'count(distinct client_id)',
        window,
        [],
      )
      return groupBy === undefined ? { ...counted, groups: [] } : counted
    },
    newDevices: async ({ fromMs, toMs }) => {
      const rows = await select<{ devices: number }>(
        `select count(*)::int as devices from (select min(time) as first from observations group by client_id) device
         where first >= $1 and first < $2`,
        [new Date(fromMs), new Date(toMs)],
      )
      return rows[0]?.devices ?? 0
    },
    firstMs: async () => {
      const rows = await select<{ first: Date | null }>('select min(time) as first from observations', [])
      return rows[0]?.first?.getTime()
    },
    hours: async ({ fromMs, toMs }: Span) => {
      const rows = await select<{ cell: number; devices: number }>(
        `select (extract(dow from hour) * 24 + extract(hour from hour))::int as cell, sum(devices)::int as devices
         from (
           select date_trunc('hour', time) as hour, count(distinct client_id) as devices
           from observations where time >= $1 and time < $2 group by 1
         ) hours group by 1`,
        [new Date(fromMs), new Date(toMs)],
      )
      return Array.from({ length: 7 * 24 }, (_, cell) => rows.find((row) => row.cell === cell)?.devices ?? 0)
    },
    events: async ({ type, window, release, groupBy }) => {
      const column = groupBy === 'patch_number' ? 'patch::text' : 'release_version'
      const counted = await count<string>(
        `select time, ${column} as value from events where type = $4 and ($5::text is null or release_version = $5)`,
        'count(*)',
        window,
        [type, release ?? null],
      )
      if (groupBy === undefined) return { ...counted, groups: [] }
      if (groupBy === 'release_version') return counted
      const groups = counted.groups.map((group) => ({ ...group, value: Number(group.value) }))
      return { ...counted, groups: groups.toSorted((a, b) => a.value - b.value) }
    },
  }
}

/** Of a window ($1 to $2) and a granularity ($3): the buckets, cut to it. None without a granularity. */
const buckets = `
  select period, greatest(period, $1::timestamptz) as start,
    least(period + ('1 ' || $3)::interval, $2::timestamptz) as stop
  from generate_series(date_trunc($3, $1::timestamptz), $2::timestamptz, ('1 ' || $3)::interval) period
  where period < $2::timestamptz and $1::timestamptz < $2::timestamptz`

function windowValues({ fromMs, toMs, granularity }: Window): unknown[] {
  return [new Date(fromMs), new Date(toMs), granularity ?? null]
}

function totalsFirst(a: { period_ms: string | null }, b: { period_ms: string | null }): number {
  return Number(a.period_ms !== null) - Number(b.period_ms !== null)
}

function toRow(request: Request) {
  const { clientId, releaseVersion, receivedMs, toldMs, rolledBack, ...rest } = request
  return {
    ...rest,
    client_id: clientId,
    release_version: releaseVersion,
    received_ms: receivedMs,
    told_ms: toldMs,
    rolled_back: rolledBack,
  }
}
