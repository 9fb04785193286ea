import { z } from 'zod'
import { AppCollaboratorRole, ReleasePlatform, ReleaseStatus } from './enums.ts'
import { Email, Int64, Timestamp, text } from './primitives.ts'

const displayNameMaxLength = 128

export const App = z.object({ id: z.string(), display_name: z.string() }).meta({ id: 'App' })
export type App = z.infer<typeof App>

export const ReleaseAnalysis = z
  .object({
    display_name: z.string().meta({ description: "Name inside the artifact; may differ from the app's." }),
    package_name: z.string(),
    min_sdk_version: z.string().meta({ description: 'Android API level, or iOS deployment target.' }),
    target_sdk_version: z.string(),
    architectures: z.array(z.string()),
  })
  .meta({ id: 'ReleaseAnalysis' })
export type ReleaseAnalysis = z.infer<typeof ReleaseAnalysis>

export const LatestRelease = z
  .object({
    id: Int64,
    version: z.string(),
    flutter_revision: z.string(),
    flutter_version: z.string().optional(),
    created_at: Timestamp,
    updated_at: Timestamp,
    status: ReleaseStatus,
    notes: z.string().optional(),
    analysis: ReleaseAnalysis,
  })
  .meta({ id: 'LatestRelease' })
export type LatestRelease = z.infer<typeof LatestRelease>

export const PendingRelease = z
  .object({ id: Int64, version: z.string(), created_at: Timestamp })
  .meta({ id: 'PendingRelease', description: 'A release whose artifact has not been analyzed.' })
export type PendingRelease = z.infer<typeof PendingRelease>

export const AppMetadata = z
  .object({
    app_id: z.string(),
    display_name: z.string(),
    latest_release_version: z.string().optional().meta({ description: 'Version of the newest release by creation.' }),
    latest_patch_number: Int64.optional().meta({ description: 'Highest patch number of that release.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
    platforms: z.array(ReleasePlatform).optional().meta({ description: 'Platforms with an uploaded artifact.' }),
    latest_releases: z.partialRecord(ReleasePlatform, LatestRelease).optional(),
    pending_releases: z.partialRecord(ReleasePlatform, PendingRelease).optional(),
    icon_url: z.string().optional(),
  })
  .meta({ id: 'AppMetadata' })
export type AppMetadata = z.infer<typeof AppMetadata>

export const GetAppIconQuery = z
  .object({ v: z.string().optional().meta({ description: 'Id of the release that the icon is of. Not looked at.' }) })
  .meta({ id: 'GetAppIconQuery' })

export const GetAppsResponse = z.object({ apps: z.array(AppMetadata) }).meta({ id: 'GetAppsResponse' })

export const GetOrganizationAppsResponse = z
  .object({ apps: z.array(AppMetadata) })
  .meta({ id: 'GetOrganizationAppsResponse' })

export const CreateAppRequest = z
  .object({ display_name: text({ max: displayNameMaxLength }), organization_id: Int64 })
  .meta({ id: 'CreateAppRequest' })

export const UpdateAppRequest = z
  .object({ display_name: text({ max: displayNameMaxLength }) })
  .meta({ id: 'UpdateAppRequest' })

export const TransferAppRequest = z
  .object({ app_id: text({ max: 128 }).meta({ description: 'The app that moves.' }) })
  .meta({ id: 'TransferAppRequest' })

export const AppCollaborator = z
  .object({ user_id: Int64, email: Email, display_name: z.string().optional(), role: AppCollaboratorRole })
  .meta({ id: 'AppCollaborator' })
export type AppCollaborator = z.infer<typeof AppCollaborator>

export const AddCollaboratorRequest = z
  .object({ email: z.email().max(254).meta({ description: 'E-mail of an existing account.' }) })
  .meta({ id: 'AddCollaboratorRequest', description: 'A new collaborator is a `developer` until changed.' })

export const UpdateCollaboratorRequest = z
  .object({ role: AppCollaboratorRole })
  .meta({ id: 'UpdateCollaboratorRequest' })

export const Channel = z.object({ id: Int64, app_id: z.string(), name: z.string() }).meta({ id: 'Channel' })
export type Channel = z.infer<typeof Channel>

export const CreateChannelRequest = z
  .object({ channel: text({ max: 128 }).meta({ description: 'Name of the channel.' }) })
  .meta({ id: 'CreateChannelRequest' })
