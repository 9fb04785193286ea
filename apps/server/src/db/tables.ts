import type {
  ApiKeyPermission,
  AppCollaboratorRole,
  InvitedRole,
  OrganizationType,
  Plan,
  ReleasePlatform,
  ReleaseStatus,
  Role,
  ServiceAccountRole,
} from '@godwit/contract'
import type { ColumnType, Generated, GeneratedAlways, JSONColumnType } from 'kysely'

type CreatedAt = ColumnType<Date, Date | undefined, Date>
type Json = JSONColumnType<Record<string, unknown>, string, string> | null

/** The tables as `schema.sql` has them. bigint columns are read as numbers: ids and sizes stay far below 2^53. */
export type Database = {
  server_secrets: { name: string; value: Buffer }
  users: {
    id: GeneratedAlways<number>
    email: string
    display_name: string | null
    jwt_issuer: string
    password_hash: string | null
    plan: Plan | null
    payment_customer_id: string | null
    patch_overage_limit: number | null
    /** null: nobody has shown yet that the e-mail is theirs. */
    email_verified_at: Date | null
    totp_secret: Buffer | null
    /** null: the second factor is off, or its first code has not been entered yet. */
    totp_enabled_at: Date | null
    /** The time step of the last code that was accepted: no code works twice. */
    totp_last_step: number | null
    created_at: CreatedAt
    updated_at: CreatedAt
  }
  user_identities: {
    id: GeneratedAlways<number>
    user_id: number
    issuer: string
    subject: string
    email: string
    created_at: CreatedAt
  }
  sessions: {
    id: string
    user_id: number
    /** What was signed in to: `browser`, `command_line`, or the id of a client of ours. */
    client: string
    /** Who vouched for the person: an identity provider, or this service. */
    issuer: string
    /** null: the identity provider did not say. */
    is_mfa: boolean | null
    cookie_hash: Buffer | null
    user_agent: string | null
    address: string | null
    created_at: CreatedAt
    expires_at: Date
    revoked_at: Date | null
  }
  command_line_codes: {
    hash: Buffer
    user_id: number
    target: string
    issuer: string
    is_mfa: boolean | null
    created_at: CreatedAt
    expires_at: Date
    session_id: string | null
    used_at: Date | null
  }
  refresh_tokens: {
    hash: Buffer
    session_id: string
    created_at: CreatedAt
    expires_at: Date
    used_at: Date | null
  }
  authorization_records: {
    model: string
    id: string
    payload: JSONColumnType<Record<string, unknown>, string, string>
    grant_id: string | null
    uid: string | null
    user_code: string | null
    expires_at: Date | null
    consumed_at: Date | null
  }
  signing_keys: {
    kid: string
    private_jwk: JSONColumnType<Record<string, string>, string, string>
    created_at: Date
    signs_from: Date
  }
  password_resets: {
    hash: Buffer
    user_id: number
    created_at: CreatedAt
    expires_at: Date
    used_at: Date | null
  }
  sign_in_limits: { key: string; points: Generated<number>; expire: number | null }
  api_keys: {
    id: GeneratedAlways<number>
    /** Exactly one of the two holds the key. */
    user_id: number | null
    service_account_id: number | null
    name: string
    prefix: string
    hash: Buffer
    permission: ApiKeyPermission
    expires_at: Date | null
    revoked_at: Date | null
    last_used_at: Date | null
    created_at: CreatedAt
  }
  organizations: {
    id: GeneratedAlways<number>
    name: string
    organization_type: OrganizationType
    /** Set: nobody sees it any more, and a job removes what is below it. */
    deletion_started_at: Date | null
    created_at: CreatedAt
    updated_at: CreatedAt
  }
  organization_allowed_domains: { organization_id: number; domain: string; created_at: CreatedAt }
  invitations: {
    id: GeneratedAlways<number>
    organization_id: number
    app_id: string | null
    email: string
    role: InvitedRole
    token_hash: Buffer
    is_mailed: boolean
    invited_by_user_id: number | null
    status: Generated<'pending' | 'accepted' | 'declined' | 'revoked'>
    accepted_by_user_id: number | null
    created_at: CreatedAt
    expires_at: Date
  }
  service_accounts: {
    id: GeneratedAlways<number>
    organization_id: number
    name: string
    role: ServiceAccountRole
    created_at: CreatedAt
    updated_at: CreatedAt
  }
  trust_rules: {
    id: GeneratedAlways<number>
    service_account_id: number
    issuer: string
    repository: string
    workflow: string
    environment: string | null
    ref_pattern: string | null
    created_at: CreatedAt
  }
  federated_sessions: {
    id: string
    /** null: the rule was deleted, and the session ended with it. */
    trust_rule_id: number | null
    issuer: string
    token_id: string
    repository: string
    workflow_ref: string
    run_id: string | null
    ref: string | null
    environment: string | null
    created_at: CreatedAt
    expires_at: Date
  }
  organization_members: {
    organization_id: number
    user_id: number
    role: Exclude<Role, 'none'>
    created_at: CreatedAt
  }
  apps: {
    id: string
    organization_id: number
    display_name: string
    device_version: Generated<number>
    created_at: CreatedAt
    updated_at: CreatedAt
  }
  app_collaborators: { app_id: string; user_id: number; role: AppCollaboratorRole; created_at: CreatedAt }
  channels: { id: GeneratedAlways<number>; app_id: string; name: string; created_at: CreatedAt }
  releases: {
    id: GeneratedAlways<number>
    app_id: string
    version: string
    flutter_revision: string
    flutter_version: string | null
    display_name: string | null
    notes: string | null
    last_patch_number: Generated<number>
    created_at: CreatedAt
    updated_at: CreatedAt
  }
  release_platforms: {
    release_id: number
    platform: ReleasePlatform
    status: ReleaseStatus
    metadata: Json
    updated_at: CreatedAt
  }
  blobs: {
    key: string
    size_bytes: number
    received_bytes: Generated<number>
    parts: Generated<string[]>
    sha256: string | null
    upload_expires_at: Date
    created_at: CreatedAt
  }
  release_artifacts: {
    id: GeneratedAlways<number>
    release_id: number
    platform: ReleasePlatform
    arch: string
    hash: string
    size_bytes: number
    filename: string | null
    podfile_lock_hash: string | null
    can_sideload: boolean
    blob_key: string
    uploaded_at: Date | null
    registered_by: Json
    created_at: CreatedAt
  }
  release_analyses: {
    release_id: number
    platform: ReleasePlatform
    artifact_id: number
    analyzer_version: number
    is_analyzed: boolean
    display_name: string | null
    package_name: string | null
    min_sdk_version: string | null
    target_sdk_version: string | null
    architectures: string[] | null
    /** A PNG. */
    icon: Buffer | null
    /** Why it is not analyzed: an AnalysisProblem, and what it was about. */
    problem: string | null
    detail: string | null
    analyzed_at: CreatedAt
  }
  patches: {
    id: GeneratedAlways<number>
    release_id: number
    number: number
    channel_id: number | null
    is_rolled_back: Generated<boolean>
    client_patch_id: string | null
    metadata: Json
    notes: string | null
    created_at: CreatedAt
    updated_at: CreatedAt
  }
  patch_artifacts: {
    id: GeneratedAlways<number>
    patch_id: number
    platform: ReleasePlatform
    arch: string
    hash: string
    hash_signature: string | null
    size_bytes: number
    podfile_lock_hash: string | null
    blob_key: string
    uploaded_at: Date | null
    registered_by: Json
    created_at: CreatedAt
  }
  device_events: {
    id: GeneratedAlways<number>
    app_id: string
    client_id: string
    release_version: string
    patch_number: number
    type: string
    occurred_at: Date
    platform: string
    arch: string
    message: string | null
    received_at: CreatedAt
  }
  audit_outbox: {
    id: GeneratedAlways<number>
    organization_id: number
    operation: string
    app_id: string | null
    actor_id: string | null
    occurred_at: Date
    event: string
  }
  audit_events: {
    organization_id: number
    seq: number
    event_time: Date
    operation: string
    app_id: string | null
    actor_id: string | null
    event: string
    hash: Buffer
  }
  audit_chains: {
    organization_id: number
    last_seq: number
    last_hash: Buffer
    last_time: Date
    dropped_seq: Generated<number>
    dropped_hash: Buffer | null
  }
  activity_segments: { id: GeneratedAlways<number>; app_id: string; observations: Buffer; created_at: CreatedAt }
  activity_writers: { id: string; last_frame: number; updated_at: CreatedAt }
  activity_apps: {
    id: GeneratedAlways<number>
    app_id: string
    seq: Generated<number>
    epoch: Generated<number>
    device_count: Generated<number>
    first_ms: number | null
  }
  activity_devices: { app: number; client: string; number: number }
  activity_removed_devices: { app: number; number: number }
  activity_device_chunks: { app: number; chunk: number; seq: number; data: Buffer }
  activity_device_changes: { app: number; seq: number; data: Buffer }
  activity_releases: { app: number; number: number; version: string }
  activity_install_states: {
    app: number
    number: number
    installs: JSONColumnType<[string | null, number[]][], string, string>
  }
  activity_hours: ActivityBitmap
  activity_days: ActivityBitmap
  activity_hour_totals: { app: number; start: Date; devices: number }
  activity_event_counts: {
    app: number
    start: Date
    release_version: string
    patch_number: number
    type: string
    count: number
  }
  activity_import_marks: { app: number; start: Date; marks: Buffer; updated_at: CreatedAt }
}

type ActivityBitmap = {
  app: number
  start: Date
  release_version: string | null
  patch_number: number
  platform: string
  seq: number
  devices: Buffer
}
