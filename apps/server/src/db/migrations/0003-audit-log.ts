import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // An event as its change leaves it, in the same transaction. Nothing orders the writers; the sealer takes rows away once
  // they are committed. No foreign keys: an event outlives what it tells of.
  `create table audit_outbox (
    id bigint generated always as identity primary key,
    organization_id bigint not null,
    operation text not null,
    app_id text,
    actor_id text,
    occurred_at timestamptz not null,
    event text not null
  )`,

  // Its rows live for less than a second: what they leave behind is removed early.
  `alter table audit_outbox set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,

  // Numbered without gaps within an organization, in the order of commits; event_time never goes back within it.
  // event: the JSON as it was hashed. hash: SHA-256 of it; the next event names it.
  `create table audit_events (
    organization_id bigint not null,
    seq bigint not null,
    event_time timestamptz not null,
    operation text not null,
    app_id text,
    actor_id text,
    event text not null,
    hash bytea not null,
    primary key (organization_id, seq, event_time)
  ) partition by range (event_time)`,
  `create index audit_events_time_idx on audit_events (organization_id, event_time, seq)`,
  // One for each set of filters: with any of them a page is one walk along an index, in the order of seq.
  `create index audit_events_operation_idx on audit_events (organization_id, operation, seq)`,
  `create index audit_events_app_idx on audit_events (organization_id, app_id, seq)`,
  `create index audit_events_actor_idx on audit_events (organization_id, actor_id, seq)`,
  `create index audit_events_app_operation_idx on audit_events (organization_id, app_id, operation, seq)`,
  `create index audit_events_actor_operation_idx on audit_events (organization_id, actor_id, operation, seq)`,
  `create index audit_events_app_actor_idx on audit_events (organization_id, app_id, actor_id, seq)`,
  `create index audit_events_all_idx on audit_events (organization_id, app_id, actor_id, operation, seq)`,

  // The ends of each organization's chain: the last event, and the last one that was dropped with its month.
  `create table audit_chains (
    organization_id bigint primary key,
    last_seq bigint not null,
    last_hash bytea not null,
    last_time timestamptz not null,
    dropped_seq bigint not null default 0,
    dropped_hash bytea
  )`,

  // Who asked for an upload, as the audit log names them: its bytes arrive by a signed URL that names nobody.
  `alter table release_artifacts add column registered_by jsonb`,
  `alter table patch_artifacts add column registered_by jsonb`,
]
