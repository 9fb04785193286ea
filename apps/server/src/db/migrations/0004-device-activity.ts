import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Observations as they were accepted, until they are compacted. app_id without a foreign key: what arrives for an app that
  // is being deleted must not wait for it, and is dropped by whoever compacts.
  `create table activity_segments (
    id bigint generated always as identity primary key,
    app_id text not null,
    observations bytea not null,
    created_at timestamptz not null default now()
  )`,
  `create index activity_segments_app_idx on activity_segments (app_id, id)`,

  // The last frame of segments that each writer has committed: one that is sent again is known by its number.
  `create table activity_writers (
    id uuid primary key,
    last_frame bigint not null,
    updated_at timestamptz not null default now()
  )`,

  // seq: the number of the last change of anything below. epoch: changes when something was taken away, so that whatever is
  // held in memory is void.
  `create table activity_apps (
    id integer generated always as identity primary key,
    app_id text not null unique,
    seq bigint not null default 0,
    epoch bigint not null default 0,
    device_count integer not null default 0
  )`,

  // client: the client_id where it is a UUID in its usual form, else one made of its SHA-256. Numbers are dense from 0.
  `create table activity_devices (
    app integer not null,
    client uuid not null,
    number integer not null,
    primary key (app, client)
  )`,
  // Numbers whose devices were deleted and which the bitmaps may still hold.
  `create table activity_removed_devices (app integer not null, number integer not null, primary key (app, number))`,

  // What is known of each device, in columns: 65,536 devices to a chunk, and what has changed since a chunk was written.
  `create table activity_device_chunks (
    app integer not null,
    chunk integer not null,
    seq bigint not null,
    data bytea not null,
    primary key (app, chunk)
  )`,
  `create table activity_device_changes (
    app integer not null,
    seq bigint not null,
    data bytea not null,
    primary key (app, seq)
  )`,
  // What the columns refer to by number.
  `create table activity_releases (
    app integer not null,
    number integer not null,
    version text not null,
    primary key (app, number)
  )`,
  `create table activity_install_states (
    app integer not null,
    number integer not null,
    installs jsonb not null,
    primary key (app, number)
  )`,

  // The numbers of the devices that were seen: Roaring bitmaps in the portable format. patch_number 0: the base release.
  // The rows of one key are parts of one set.
  ...['activity_hours', 'activity_days'].flatMap((table) => [
    `create table ${table} (
      app integer not null,
      start timestamptz not null,
      release_version text,
      patch_number bigint not null,
      platform text not null,
      seq bigint not null,
      devices bytea not null
    ) partition by range (start)`,
    `create index ${table}_start_idx on ${table} (app, start)`,
    `create index ${table}_seq_idx on ${table} (app, seq)`,
    `alter table ${table} alter column devices set storage external`,
  ]),
  // How many devices were seen in an hour, for hours that are over. Absent: to be counted again.
  `create table activity_hour_totals (
    app integer not null,
    start timestamptz not null,
    devices integer not null,
    primary key (app, start)
  )`,
  // By the hour in which the event was received.
  `create table activity_event_counts (
    app integer not null,
    start timestamptz not null,
    release_version text not null,
    patch_number bigint not null,
    type text not null,
    count bigint not null,
    primary key (app, start, release_version, patch_number, type)
  )`,
  // Which lines of imports are known, by the hour that they tell of: 52 bits of hash each, as float64.
  `create table activity_import_marks (
    app integer not null,
    start timestamptz not null,
    marks bytea not null,
    updated_at timestamptz not null default now(),
    primary key (app, start)
  )`,
  `create index activity_import_marks_updated_at_idx on activity_import_marks (updated_at)`,

  // Compressing what hardly shrinks would cost the more the more devices there are.
  `alter table activity_segments alter column observations set storage external`,
  `alter table activity_device_chunks alter column data set storage external`,
  `alter table activity_device_changes alter column data set storage external`,
  `alter table activity_import_marks alter column marks set storage external`,
  // Their rows live for seconds: what they leave behind is removed early.
  ...['activity_segments', 'activity_device_changes'].map(
    (table) => `alter table ${table} set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
  ),
]
