-- Made by `npm run schema` from the migrations; not to be edited.

create table activity_apps (
  id integer generated always as identity not null,
  app_id text not null,
  seq bigint not null default 0,
  epoch bigint not null default 0,
  device_count integer not null default 0,
  first_ms bigint,
  constraint activity_apps_pkey PRIMARY KEY (id),
  constraint activity_apps_app_id_key UNIQUE (app_id)
);

create table activity_days (
  app integer not null,
  start timestamp with time zone not null,
  release_version text,
  patch_number bigint not null,
  platform text not null,
  seq bigint not null,
  devices bytea not null
) partition by RANGE (start);
CREATE INDEX activity_days_seq_idx ON public.activity_days USING btree (app, seq);
CREATE INDEX activity_days_start_idx ON public.activity_days USING btree (app, start);

create table activity_device_changes (
  app integer not null,
  seq bigint not null,
  data bytea not null,
  constraint activity_device_changes_pkey PRIMARY KEY (app, seq)
);

create table activity_device_chunks (
  app integer not null,
  chunk integer not null,
  seq bigint not null,
  data bytea not null,
  constraint activity_device_chunks_pkey PRIMARY KEY (app, chunk)
);

create table activity_devices (
  app integer not null,
  client uuid not null,
  number integer not null,
  constraint activity_devices_pkey PRIMARY KEY (app, client)
);

create table activity_event_counts (
  app integer not null,
  start timestamp with time zone not null,
  release_version text not null,
  patch_number bigint not null,
  type text not null,
  count bigint not null,
  constraint activity_event_counts_pkey PRIMARY KEY (app, start, release_version, patch_number, type)
);

create table activity_hour_totals (
  app integer not null,
  start timestamp with time zone not null,
  devices integer not null,
  constraint activity_hour_totals_pkey PRIMARY KEY (app, start)
);

create table activity_hours (
  app integer not null,
  start timestamp with time zone not null,
  release_version text,
  patch_number bigint not null,
  platform text not null,
  seq bigint not null,
  devices bytea not null
) partition by RANGE (start);
CREATE INDEX activity_hours_seq_idx ON public.activity_hours USING btree (app, seq);
CREATE INDEX activity_hours_start_idx ON public.activity_hours USING btree (app, start);

create table activity_import_marks (
  app integer not null,
  start timestamp with time zone not null,
  marks bytea not null,
  updated_at timestamp with time zone not null default now(),
  constraint activity_import_marks_pkey PRIMARY KEY (app, start)
);
CREATE INDEX activity_import_marks_updated_at_idx ON public.activity_import_marks USING btree (updated_at);

create table activity_install_states (
  app integer not null,
  number integer not null,
  installs jsonb not null,
  constraint activity_install_states_pkey PRIMARY KEY (app, number)
);

create table activity_releases (
  app integer not null,
  number integer not null,
  version text not null,
  constraint activity_releases_pkey PRIMARY KEY (app, number)
);

create table activity_removed_devices (
  app integer not null,
  number integer not null,
  constraint activity_removed_devices_pkey PRIMARY KEY (app, number)
);

create table activity_segments (
  id bigint generated always as identity not null,
  app_id text not null,
  observations bytea not null,
  created_at timestamp with time zone not null default now(),
  constraint activity_segments_pkey PRIMARY KEY (id)
);
CREATE INDEX activity_segments_app_idx ON public.activity_segments USING btree (app_id, id);

create table activity_writers (
  id uuid not null,
  last_frame bigint not null,
  updated_at timestamp with time zone not null default now(),
  constraint activity_writers_pkey PRIMARY KEY (id)
);

create table api_keys (
  id bigint generated always as identity not null,
  user_id bigint,
  name text not null,
  prefix text not null,
  hash bytea not null,
  permission text not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  service_account_id bigint,
  constraint api_keys_holder_check CHECK ((num_nonnulls(user_id, service_account_id) = 1)),
  constraint api_keys_permission_check CHECK ((permission = ANY (ARRAY['full'::text, 'release_and_patch'::text]))),
  constraint api_keys_service_account_id_fkey FOREIGN KEY (service_account_id) REFERENCES service_accounts(id) ON DELETE CASCADE,
  constraint api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint api_keys_pkey PRIMARY KEY (id)
);
CREATE INDEX api_keys_prefix_idx ON public.api_keys USING btree (prefix);
CREATE INDEX api_keys_service_account_id_idx ON public.api_keys USING btree (service_account_id);
CREATE INDEX api_keys_user_id_idx ON public.api_keys USING btree (user_id);

create table app_collaborators (
  app_id text not null,
  user_id bigint not null,
  role text not null,
  created_at timestamp with time zone not null default now(),
  constraint app_collaborators_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'developer'::text]))),
  constraint app_collaborators_app_id_fkey FOREIGN KEY (app_id) REFERENCES apps(id) ON DELETE CASCADE,
  constraint app_collaborators_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint app_collaborators_pkey PRIMARY KEY (app_id, user_id)
);
CREATE INDEX app_collaborators_user_id_idx ON public.app_collaborators USING btree (user_id);

create table apps (
  id text not null,
  organization_id bigint not null,
  display_name text not null,
  device_version bigint not null default 1,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint apps_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint apps_pkey PRIMARY KEY (id)
);
CREATE INDEX apps_organization_id_idx ON public.apps USING btree (organization_id);

create table audit_chains (
  organization_id bigint not null,
  last_seq bigint not null,
  last_hash bytea not null,
  last_time timestamp with time zone not null,
  dropped_seq bigint not null default 0,
  dropped_hash bytea,
  constraint audit_chains_pkey PRIMARY KEY (organization_id)
);

create table audit_events (
  organization_id bigint not null,
  seq bigint not null,
  event_time timestamp with time zone not null,
  operation text not null,
  app_id text,
  actor_id text,
  event text not null,
  hash bytea not null,
  constraint audit_events_pkey PRIMARY KEY (organization_id, seq, event_time)
) partition by RANGE (event_time);
CREATE INDEX audit_events_actor_idx ON public.audit_events USING btree (organization_id, actor_id, seq);
CREATE INDEX audit_events_actor_operation_idx ON public.audit_events USING btree (organization_id, actor_id, operation, seq);
CREATE INDEX audit_events_all_idx ON public.audit_events USING btree (organization_id, app_id, actor_id, operation, seq);
CREATE INDEX audit_events_app_actor_idx ON public.audit_events USING btree (organization_id, app_id, actor_id, seq);
CREATE INDEX audit_events_app_idx ON public.audit_events USING btree (organization_id, app_id, seq);
CREATE INDEX audit_events_app_operation_idx ON public.audit_events USING btree (organization_id, app_id, operation, seq);
CREATE INDEX audit_events_operation_idx ON public.audit_events USING btree (organization_id, operation, seq);
CREATE INDEX audit_events_time_idx ON public.audit_events USING btree (organization_id, event_time, seq);

create table audit_outbox (
  id bigint generated always as identity not null,
  organization_id bigint not null,
  operation text not null,
  app_id text,
  actor_id text,
  occurred_at timestamp with time zone not null,
  event text not null,
  constraint audit_outbox_pkey PRIMARY KEY (id)
);

create table authorization_records (
  model text not null,
  id text not null,
  payload jsonb not null,
  grant_id text,
  uid text,
  user_code text,
  expires_at timestamp with time zone,
  consumed_at timestamp with time zone,
  constraint authorization_records_pkey PRIMARY KEY (model, id)
);
CREATE INDEX authorization_records_expires_at_idx ON public.authorization_records USING btree (expires_at);
CREATE INDEX authorization_records_grant_id_idx ON public.authorization_records USING btree (grant_id);
CREATE INDEX authorization_records_uid_idx ON public.authorization_records USING btree (uid);
CREATE INDEX authorization_records_user_code_idx ON public.authorization_records USING btree (user_code);

create table blobs (
  key text not null,
  size_bytes bigint not null,
  received_bytes bigint not null default 0,
  sha256 text,
  upload_expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  parts text[] not null default '{}'::text[],
  constraint blobs_check CHECK (((received_bytes >= 0) AND (received_bytes <= size_bytes))),
  constraint blobs_size_bytes_check CHECK ((size_bytes >= 0)),
  constraint blobs_pkey PRIMARY KEY (key)
);

create table channels (
  id bigint generated always as identity not null,
  app_id text not null,
  name text not null,
  created_at timestamp with time zone not null default now(),
  constraint channels_app_id_fkey FOREIGN KEY (app_id) REFERENCES apps(id) ON DELETE CASCADE,
  constraint channels_pkey PRIMARY KEY (id),
  constraint channels_name_key UNIQUE (app_id, name)
);

create table command_line_codes (
  hash bytea not null,
  user_id bigint not null,
  target text not null,
  issuer text not null,
  is_mfa boolean,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  session_id text,
  used_at timestamp with time zone,
  constraint command_line_codes_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE SET NULL,
  constraint command_line_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint command_line_codes_pkey PRIMARY KEY (hash)
);
CREATE INDEX command_line_codes_expires_at_idx ON public.command_line_codes USING btree (expires_at);

create table device_events (
  id bigint generated always as identity not null,
  app_id text not null,
  client_id text not null,
  release_version text not null,
  patch_number bigint not null,
  type text not null,
  occurred_at timestamp with time zone not null,
  platform text not null,
  arch text not null,
  message text,
  received_at timestamp with time zone not null default now(),
  constraint device_events_pkey PRIMARY KEY (id),
  constraint device_events_event_key UNIQUE (app_id, client_id, release_version, patch_number, type, occurred_at)
);
CREATE INDEX device_events_installs_idx ON public.device_events USING btree (app_id, received_at) WHERE (type = '__patch_install__'::text);

create table federated_sessions (
  id text not null,
  trust_rule_id bigint,
  issuer text not null,
  token_id text not null,
  repository text not null,
  workflow_ref text not null,
  run_id text,
  ref text,
  environment text,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  constraint federated_sessions_trust_rule_id_fkey FOREIGN KEY (trust_rule_id) REFERENCES trust_rules(id) ON DELETE SET NULL,
  constraint federated_sessions_pkey PRIMARY KEY (id),
  constraint federated_sessions_token_key UNIQUE (issuer, token_id)
);
CREATE INDEX federated_sessions_expires_at_idx ON public.federated_sessions USING btree (expires_at);
CREATE INDEX federated_sessions_trust_rule_id_idx ON public.federated_sessions USING btree (trust_rule_id);

create table invitations (
  id bigint generated always as identity not null,
  organization_id bigint not null,
  app_id text,
  email text not null,
  role text not null,
  token_hash bytea not null,
  is_mailed boolean not null,
  invited_by_user_id bigint,
  status text not null default 'pending'::text,
  accepted_by_user_id bigint,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  constraint invitations_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'appManager'::text, 'developer'::text, 'viewer'::text]))),
  constraint invitations_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'accepted'::text, 'declined'::text, 'revoked'::text]))),
  constraint invitations_accepted_by_user_id_fkey FOREIGN KEY (accepted_by_user_id) REFERENCES users(id) ON DELETE SET NULL,
  constraint invitations_app_id_fkey FOREIGN KEY (app_id) REFERENCES apps(id) ON DELETE CASCADE,
  constraint invitations_invited_by_user_id_fkey FOREIGN KEY (invited_by_user_id) REFERENCES users(id) ON DELETE SET NULL,
  constraint invitations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint invitations_pkey PRIMARY KEY (id),
  constraint invitations_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX invitations_app_id_idx ON public.invitations USING btree (app_id);
CREATE INDEX invitations_email_idx ON public.invitations USING btree (lower(email)) WHERE (status = 'pending'::text);
CREATE UNIQUE INDEX invitations_pending_key ON public.invitations USING btree (organization_id, lower(email), app_id) NULLS NOT DISTINCT WHERE (status = 'pending'::text);

create table organization_allowed_domains (
  organization_id bigint not null,
  domain text not null,
  created_at timestamp with time zone not null default now(),
  constraint organization_allowed_domains_domain_check CHECK ((domain = lower(domain))),
  constraint organization_allowed_domains_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint organization_allowed_domains_pkey PRIMARY KEY (organization_id, domain)
);

create table organization_members (
  organization_id bigint not null,
  user_id bigint not null,
  role text not null,
  created_at timestamp with time zone not null default now(),
  constraint organization_members_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'appManager'::text, 'developer'::text, 'viewer'::text]))),
  constraint organization_members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint organization_members_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint organization_members_pkey PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX organization_members_user_id_idx ON public.organization_members USING btree (user_id);
CREATE UNIQUE INDEX organization_members_owner_key ON public.organization_members USING btree (organization_id) WHERE (role = 'owner'::text);

create table organizations (
  id bigint generated always as identity not null,
  name text not null,
  organization_type text not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  deletion_started_at timestamp with time zone,
  constraint organizations_organization_type_check CHECK ((organization_type = ANY (ARRAY['personal'::text, 'team'::text]))),
  constraint organizations_pkey PRIMARY KEY (id)
);

create table password_resets (
  hash bytea not null,
  user_id bigint not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint password_resets_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint password_resets_pkey PRIMARY KEY (hash)
);
CREATE INDEX password_resets_user_id_idx ON public.password_resets USING btree (user_id);

create table patch_artifacts (
  id bigint generated always as identity not null,
  patch_id bigint not null,
  platform text not null,
  arch text not null,
  hash text not null,
  hash_signature text,
  size_bytes bigint not null,
  podfile_lock_hash text,
  blob_key text not null,
  uploaded_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  registered_by jsonb,
  constraint patch_artifacts_platform_check CHECK ((platform = ANY (ARRAY['android'::text, 'ios'::text, 'linux'::text, 'macos'::text, 'windows'::text]))),
  constraint patch_artifacts_blob_key_fkey FOREIGN KEY (blob_key) REFERENCES blobs(key),
  constraint patch_artifacts_patch_id_fkey FOREIGN KEY (patch_id) REFERENCES patches(id) ON DELETE CASCADE,
  constraint patch_artifacts_pkey PRIMARY KEY (id),
  constraint patch_artifacts_blob_key_key UNIQUE (blob_key)
);
CREATE INDEX patch_artifacts_patch_id_idx ON public.patch_artifacts USING btree (patch_id);
CREATE UNIQUE INDEX patch_artifacts_uploaded_key ON public.patch_artifacts USING btree (patch_id, platform, arch) WHERE (uploaded_at IS NOT NULL);

create table patches (
  id bigint generated always as identity not null,
  release_id bigint not null,
  number bigint not null,
  channel_id bigint,
  is_rolled_back boolean not null default false,
  client_patch_id text,
  metadata jsonb,
  notes text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint patches_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES channels(id) ON DELETE SET NULL,
  constraint patches_release_id_fkey FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE,
  constraint patches_pkey PRIMARY KEY (id),
  constraint patches_client_patch_id_key UNIQUE (release_id, client_patch_id),
  constraint patches_number_key UNIQUE (release_id, number)
);
CREATE INDEX patches_channel_id_idx ON public.patches USING btree (channel_id);

create table refresh_tokens (
  hash bytea not null,
  session_id text not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint refresh_tokens_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE,
  constraint refresh_tokens_pkey PRIMARY KEY (hash)
);
CREATE INDEX refresh_tokens_session_id_idx ON public.refresh_tokens USING btree (session_id);

create table release_analyses (
  release_id bigint not null,
  platform text not null,
  artifact_id bigint not null,
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
  analyzed_at timestamp with time zone not null default now(),
  constraint release_analyses_complete CHECK (
CASE
    WHEN is_analyzed THEN ((num_nulls(display_name, package_name, min_sdk_version, target_sdk_version, architectures) = 0) AND (problem IS NULL))
    ELSE ((problem IS NOT NULL) AND (icon IS NULL))
END),
  constraint release_analyses_platform_check CHECK ((platform = ANY (ARRAY['android'::text, 'ios'::text, 'linux'::text, 'macos'::text, 'windows'::text]))),
  constraint release_analyses_artifact_id_fkey FOREIGN KEY (artifact_id) REFERENCES release_artifacts(id) ON DELETE CASCADE,
  constraint release_analyses_release_id_fkey FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE,
  constraint release_analyses_pkey PRIMARY KEY (release_id, platform)
);
CREATE INDEX release_analyses_artifact_id_idx ON public.release_analyses USING btree (artifact_id);

create table release_artifacts (
  id bigint generated always as identity not null,
  release_id bigint not null,
  platform text not null,
  arch text not null,
  hash text not null,
  size_bytes bigint not null,
  filename text,
  podfile_lock_hash text,
  can_sideload boolean not null,
  blob_key text not null,
  uploaded_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  registered_by jsonb,
  constraint release_artifacts_platform_check CHECK ((platform = ANY (ARRAY['android'::text, 'ios'::text, 'linux'::text, 'macos'::text, 'windows'::text]))),
  constraint release_artifacts_blob_key_fkey FOREIGN KEY (blob_key) REFERENCES blobs(key),
  constraint release_artifacts_release_id_fkey FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE,
  constraint release_artifacts_pkey PRIMARY KEY (id),
  constraint release_artifacts_blob_key_key UNIQUE (blob_key)
);
CREATE INDEX release_artifacts_release_id_idx ON public.release_artifacts USING btree (release_id);
CREATE UNIQUE INDEX release_artifacts_uploaded_key ON public.release_artifacts USING btree (release_id, platform, arch) WHERE (uploaded_at IS NOT NULL);

create table release_platforms (
  release_id bigint not null,
  platform text not null,
  status text not null,
  metadata jsonb,
  updated_at timestamp with time zone not null default now(),
  constraint release_platforms_platform_check CHECK ((platform = ANY (ARRAY['android'::text, 'ios'::text, 'linux'::text, 'macos'::text, 'windows'::text]))),
  constraint release_platforms_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'active'::text]))),
  constraint release_platforms_release_id_fkey FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE,
  constraint release_platforms_pkey PRIMARY KEY (release_id, platform)
);

create table releases (
  id bigint generated always as identity not null,
  app_id text not null,
  version text not null,
  flutter_revision text not null,
  flutter_version text,
  display_name text,
  notes text,
  last_patch_number bigint not null default 0,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint releases_app_id_fkey FOREIGN KEY (app_id) REFERENCES apps(id) ON DELETE CASCADE,
  constraint releases_pkey PRIMARY KEY (id),
  constraint releases_version_key UNIQUE (app_id, version)
);
CREATE INDEX releases_created_at_idx ON public.releases USING btree (app_id, created_at DESC, id DESC);

create table server_secrets (
  name text not null,
  value bytea not null,
  constraint server_secrets_pkey PRIMARY KEY (name)
);

create table service_accounts (
  id bigint generated always as identity not null,
  organization_id bigint not null,
  name text not null,
  role text not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint service_accounts_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'appManager'::text, 'developer'::text, 'viewer'::text, 'auditor'::text]))),
  constraint service_accounts_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint service_accounts_pkey PRIMARY KEY (id)
);
CREATE INDEX service_accounts_organization_id_idx ON public.service_accounts USING btree (organization_id);

create table sessions (
  id text not null,
  user_id bigint not null,
  client text not null,
  issuer text not null,
  is_mfa boolean,
  cookie_hash bytea,
  user_agent text,
  address text,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  constraint sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_cookie_hash_key UNIQUE (cookie_hash)
);
CREATE INDEX sessions_expires_at_idx ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_user_id_idx ON public.sessions USING btree (user_id);

create table sign_in_limits (
  key text not null,
  points integer not null default 0,
  expire bigint,
  constraint sign_in_limits_pkey PRIMARY KEY (key)
);

create table signing_keys (
  kid text not null,
  private_jwk jsonb not null,
  created_at timestamp with time zone not null,
  signs_from timestamp with time zone not null,
  constraint signing_keys_pkey PRIMARY KEY (kid)
);

create table trust_rules (
  id bigint generated always as identity not null,
  service_account_id bigint not null,
  issuer text not null,
  repository text not null,
  workflow text not null,
  environment text,
  ref_pattern text,
  created_at timestamp with time zone not null default now(),
  constraint trust_rules_service_account_id_fkey FOREIGN KEY (service_account_id) REFERENCES service_accounts(id) ON DELETE CASCADE,
  constraint trust_rules_pkey PRIMARY KEY (id)
);
CREATE INDEX trust_rules_repository_idx ON public.trust_rules USING btree (issuer, lower(repository));
CREATE INDEX trust_rules_service_account_id_idx ON public.trust_rules USING btree (service_account_id);

create table user_identities (
  id bigint generated always as identity not null,
  user_id bigint not null,
  issuer text not null,
  subject text not null,
  email text not null,
  created_at timestamp with time zone not null default now(),
  constraint user_identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint user_identities_pkey PRIMARY KEY (id),
  constraint user_identities_subject_key UNIQUE (issuer, subject)
);
CREATE INDEX user_identities_user_id_idx ON public.user_identities USING btree (user_id);

create table users (
  id bigint generated always as identity not null,
  email text not null,
  display_name text,
  jwt_issuer text not null,
  password_hash text,
  plan text,
  payment_customer_id text,
  patch_overage_limit bigint,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  email_verified_at timestamp with time zone,
  totp_secret bytea,
  totp_enabled_at timestamp with time zone,
  totp_last_step bigint,
  constraint users_patch_overage_limit_check CHECK ((patch_overage_limit >= 0)),
  constraint users_plan_check CHECK ((plan = ANY (ARRAY['free'::text, 'pro'::text, 'business'::text, 'enterprise'::text]))),
  constraint users_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX users_email_key ON public.users USING btree (lower(email));
