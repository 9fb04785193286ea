import type {
  ApiKeyPermission,
  AppCollaboratorRole,
  OrganizationType,
  Plan,
  ReleasePlatform,
  ReleaseStatus,
  Role,
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
    created_at: CreatedAt
    updated_at: CreatedAt
  }
  api_keys: {
    id: GeneratedAlways<number>
    user_id: number
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
    created_at: CreatedAt
    updated_at: CreatedAt
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
    created_at: CreatedAt
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
}
