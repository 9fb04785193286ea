import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create table server_secrets (
    name text primary key,
    value bytea not null
  )`,

  `create table users (
    id bigint generated always as identity primary key,
    email text not null,
    display_name text,
    jwt_issuer text not null,
    password_hash text,
    plan text check (plan in ('free', 'pro', 'business', 'enterprise')),
    payment_customer_id text,
    patch_overage_limit bigint check (patch_overage_limit >= 0),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  `create unique index users_email_key on users (lower(email))`,

  `create table api_keys (
    id bigint generated always as identity primary key,
    user_id bigint not null references users on delete cascade,
    name text not null,
    prefix text not null,
    hash bytea not null,
    permission text not null check (permission in ('full', 'release_and_patch')),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz not null default now()
  )`,
  `create index api_keys_prefix_idx on api_keys (prefix)`,
  `create index api_keys_user_id_idx on api_keys (user_id)`,

  `create table organizations (
    id bigint generated always as identity primary key,
    name text not null,
    organization_type text not null check (organization_type in ('personal', 'team')),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,

  `create table organization_members (
    organization_id bigint not null references organizations on delete cascade,
    user_id bigint not null references users on delete cascade,
    role text not null check (role in ('owner', 'admin', 'appManager', 'developer', 'viewer')),
    created_at timestamptz not null default now(),
    primary key (organization_id, user_id)
  )`,
  `create unique index organization_members_owner_key on organization_members (organization_id) where role = 'owner'`,
  `create index organization_members_user_id_idx on organization_members (user_id)`,

  `create table apps (
    id text primary key,
    organization_id bigint not null references organizations,
    display_name text not null,
    device_version bigint not null default 1,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  `create index apps_organization_id_idx on apps (organization_id)`,

  `create table app_collaborators (
    app_id text not null references apps on delete cascade,
    user_id bigint not null references users on delete cascade,
    role text not null check (role in ('admin', 'developer')),
    created_at timestamptz not null default now(),
    primary key (app_id, user_id)
  )`,
  `create index app_collaborators_user_id_idx on app_collaborators (user_id)`,

  `create table channels (
    id bigint generated always as identity primary key,
    app_id text not null references apps on delete cascade,
    name text not null,
    created_at timestamptz not null default now(),
    constraint channels_name_key unique (app_id, name)
  )`,

  `create table releases (
    id bigint generated always as identity primary key,
    app_id text not null references apps on delete cascade,
    version text not null,
    flutter_revision text not null,
    flutter_version text,
    display_name text,
    notes text,
    last_patch_number bigint not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint releases_version_key unique (app_id, version)
  )`,
  `create index releases_created_at_idx on releases (app_id, created_at desc, id desc)`,

  `create table release_platforms (
    release_id bigint not null references releases on delete cascade,
    platform text not null check (platform in ('android', 'ios', 'linux', 'macos', 'windows')),
    status text not null check (status in ('draft', 'active')),
    metadata jsonb,
    updated_at timestamptz not null default now(),
    primary key (release_id, platform)
  )`,

  `create table blobs (
    key text primary key,
    size_bytes bigint not null check (size_bytes >= 0),
    received_bytes bigint not null default 0 check (received_bytes between 0 and size_bytes),
    sha256 text,
    upload_expires_at timestamptz not null,
    created_at timestamptz not null default now()
  )`,

  `create table release_artifacts (
    id bigint generated always as identity primary key,
    release_id bigint not null references releases on delete cascade,
    platform text not null check (platform in ('android', 'ios', 'linux', 'macos', 'windows')),
    arch text not null,
    hash text not null,
    size_bytes bigint not null,
    filename text,
    podfile_lock_hash text,
    can_sideload boolean not null,
    blob_key text not null unique references blobs,
    uploaded_at timestamptz,
    created_at timestamptz not null default now()
  )`,
  `create unique index release_artifacts_uploaded_key on release_artifacts (release_id, platform, arch)
    where uploaded_at is not null`,
  `create index release_artifacts_release_id_idx on release_artifacts (release_id)`,

  `create table patches (
    id bigint generated always as identity primary key,
    release_id bigint not null references releases on delete cascade,
    number bigint not null,
    channel_id bigint references channels on delete set null,
    is_rolled_back boolean not null default false,
    client_patch_id text,
    metadata jsonb,
    notes text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint patches_number_key unique (release_id, number),
    constraint patches_client_patch_id_key unique (release_id, client_patch_id)
  )`,
  `create index patches_channel_id_idx on patches (channel_id)`,

  `create table patch_artifacts (
    id bigint generated always as identity primary key,
    patch_id bigint not null references patches on delete cascade,
    platform text not null check (platform in ('android', 'ios', 'linux', 'macos', 'windows')),
    arch text not null,
    hash text not null,
    hash_signature text,
    size_bytes bigint not null,
    podfile_lock_hash text,
    blob_key text not null unique references blobs,
    uploaded_at timestamptz,
    created_at timestamptz not null default now()
  )`,
  `create unique index patch_artifacts_uploaded_key on patch_artifacts (patch_id, platform, arch)
    where uploaded_at is not null`,
  `create index patch_artifacts_patch_id_idx on patch_artifacts (patch_id)`,

  `create table device_events (
    id bigint generated always as identity primary key,
    app_id text not null,
    client_id text not null,
    release_version text not null,
    patch_number bigint not null,
    type text not null,
    occurred_at timestamptz not null,
    platform text not null,
    arch text not null,
    message text,
    received_at timestamptz not null default now(),
    constraint device_events_event_key unique (app_id, client_id, release_version, patch_number, type, occurred_at)
  )`,
]
