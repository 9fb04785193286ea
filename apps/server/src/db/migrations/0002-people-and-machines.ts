import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Accounts of before were made by the operator, who vouches for their e-mail.
  `alter table users
    add column email_verified_at timestamptz,
    add column totp_secret bytea,
    add column totp_enabled_at timestamptz,
    add column totp_last_step bigint`,
  `update users set email_verified_at = created_at`,

  // Who an identity provider says somebody is. Its subject never changes, its e-mail may.
  `create table user_identities (
    id bigint generated always as identity primary key,
    user_id bigint not null references users on delete cascade,
    issuer text not null,
    subject text not null,
    email text not null,
    created_at timestamptz not null default now(),
    constraint user_identities_subject_key unique (issuer, subject)
  )`,
  `create index user_identities_user_id_idx on user_identities (user_id)`,

  // One sign-in of a person: in a browser (found by its cookie), or with a client (found by the sid of its tokens).
  `create table sessions (
    id text primary key,
    user_id bigint not null references users on delete cascade,
    client text not null,
    issuer text not null,
    is_mfa boolean,
    cookie_hash bytea unique,
    user_agent text,
    address text,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    revoked_at timestamptz
  )`,
  `create index sessions_user_id_idx on sessions (user_id)`,
  `create index sessions_expires_at_idx on sessions (expires_at)`,

  // Codes of the command line client's sign-in. session_id is what the code was exchanged for: a second use ends it.
  `create table command_line_codes (
    hash bytea primary key,
    user_id bigint not null references users on delete cascade,
    target text not null,
    issuer text not null,
    is_mfa boolean,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    session_id text references sessions on delete set null,
    used_at timestamptz
  )`,
  `create index command_line_codes_expires_at_idx on command_line_codes (expires_at)`,

  `create table refresh_tokens (
    hash bytea primary key,
    session_id text not null references sessions on delete cascade,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_at timestamptz
  )`,
  `create index refresh_tokens_session_id_idx on refresh_tokens (session_id)`,

  // What the authorization server library keeps: sessions, grants, codes and tokens of our own clients.
  `create table authorization_records (
    model text not null,
    id text not null,
    payload jsonb not null,
    grant_id text,
    uid text,
    user_code text,
    expires_at timestamptz,
    consumed_at timestamptz,
    primary key (model, id)
  )`,
  `create index authorization_records_grant_id_idx on authorization_records (grant_id)`,
  `create index authorization_records_uid_idx on authorization_records (uid)`,
  `create index authorization_records_user_code_idx on authorization_records (user_code)`,
  `create index authorization_records_expires_at_idx on authorization_records (expires_at)`,

  // The newest key that has begun to sign signs; the others only verify.
  `create table signing_keys (
    kid text primary key,
    private_jwk jsonb not null,
    created_at timestamptz not null,
    signs_from timestamptz not null
  )`,

  `create table password_resets (
    hash bytea primary key,
    user_id bigint not null references users on delete cascade,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_at timestamptz
  )`,
  `create index password_resets_user_id_idx on password_resets (user_id)`,

  // In the form that rate-limiter-flexible expects. expire: milliseconds since the Unix epoch.
  `create table sign_in_limits (
    key text primary key,
    points integer not null default 0,
    expire bigint
  )`,

  `alter table organizations add column deletion_started_at timestamptz`,

  `create table organization_allowed_domains (
    organization_id bigint not null references organizations on delete cascade,
    domain text not null check (domain = lower(domain)),
    created_at timestamptz not null default now(),
    primary key (organization_id, domain)
  )`,

  // app_id null: to the organization. is_mailed: only the invited mailbox has the link, so that using it proves the e-mail.
  `create table invitations (
    id bigint generated always as identity primary key,
    organization_id bigint not null references organizations on delete cascade,
    app_id text references apps on delete cascade,
    email text not null,
    role text not null check (role in ('admin', 'appManager', 'developer', 'viewer')),
    token_hash bytea not null unique,
    is_mailed boolean not null,
    invited_by_user_id bigint references users on delete set null,
    status text not null default 'pending' check (status in ('pending', 'accepted', 'declined', 'revoked')),
    accepted_by_user_id bigint references users on delete set null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
  )`,
  `create unique index invitations_pending_key on invitations (organization_id, lower(email), app_id) nulls not distinct
    where status = 'pending'`,
  `create index invitations_email_idx on invitations (lower(email)) where status = 'pending'`,
  `create index invitations_app_id_idx on invitations (app_id)`,

  `create table service_accounts (
    id bigint generated always as identity primary key,
    organization_id bigint not null references organizations on delete cascade,
    name text not null,
    role text not null check (role in ('admin', 'appManager', 'developer', 'viewer', 'auditor')),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  `create index service_accounts_organization_id_idx on service_accounts (organization_id)`,

  `alter table api_keys
    alter column user_id drop not null,
    add column service_account_id bigint references service_accounts on delete cascade,
    add constraint api_keys_holder_check check (num_nonnulls(user_id, service_account_id) = 1)`,
  `create index api_keys_service_account_id_idx on api_keys (service_account_id)`,

  `create table trust_rules (
    id bigint generated always as identity primary key,
    service_account_id bigint not null references service_accounts on delete cascade,
    issuer text not null,
    repository text not null,
    workflow text not null,
    environment text,
    ref_pattern text,
    created_at timestamptz not null default now()
  )`,
  `create index trust_rules_service_account_id_idx on trust_rules (service_account_id)`,
  `create index trust_rules_repository_idx on trust_rules (issuer, lower(repository))`,

  // One sign-in of a CI job. (issuer, token_id) is the token it came with: a second use of it is refused, also after its
  // rule, and with the rule the session, is gone.
  `create table federated_sessions (
    id text primary key,
    trust_rule_id bigint references trust_rules on delete set null,
    issuer text not null,
    token_id text not null,
    repository text not null,
    workflow_ref text not null,
    run_id text,
    ref text,
    environment text,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    constraint federated_sessions_token_key unique (issuer, token_id)
  )`,
  `create index federated_sessions_trust_rule_id_idx on federated_sessions (trust_rule_id)`,
  `create index federated_sessions_expires_at_idx on federated_sessions (expires_at)`,

  // Usage counts the installs of a month by app.
  `create index device_events_installs_idx on device_events (app_id, received_at) where type = '__patch_install__'`,
]
