import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // What the primary artifact of a release on a platform says of itself, or why it says nothing. It goes with the artifact,
  // and never stands in the way of one.
  `create table release_analyses (
    release_id bigint not null references releases on delete cascade,
    platform text not null check (platform in ('android', 'ios', 'linux', 'macos', 'windows')),
    artifact_id bigint not null references release_artifacts on delete cascade,
    analyzer_version integer not null,
    is_analyzed boolean not null,
    display_name text,
    package_name text,
    min_sdk_version text,
    target_sdk_version text,
    architectures text[],
    icon bytea,
    problem text,
    detail text,
    analyzed_at timestamptz not null default now(),
    primary key (release_id, platform),
    constraint release_analyses_complete check (
      case when is_analyzed
        then num_nulls(display_name, package_name, min_sdk_version, target_sdk_version, architectures) = 0 and problem is null
        else problem is not null and icon is null
      end
    )
  )`,
  `create index release_analyses_artifact_id_idx on release_analyses (artifact_id)`,
  // A PNG does not shrink.
  `alter table release_analyses alter column icon set storage external`,
]
