import { z } from 'zod'

export const ReleasePlatform = z.enum(['android', 'ios', 'linux', 'macos', 'windows']).meta({ id: 'ReleasePlatform' })
export type ReleasePlatform = z.infer<typeof ReleasePlatform>

export const ReleaseStatus = z.enum(['draft', 'active']).meta({
  id: 'ReleaseStatus',
  description: '`draft`: not all artifacts of the platform are uploaded. `active`: they are. Kept per platform.',
})
export type ReleaseStatus = z.infer<typeof ReleaseStatus>

export const Role = z.enum(['owner', 'admin', 'appManager', 'developer', 'viewer', 'none']).meta({
  id: 'Role',
  description: 'Role in an organization. `none`: not a member, but a collaborator on one of its apps.',
})
export type Role = z.infer<typeof Role>

export const InvitedRole = Role.exclude(['owner', 'none']).meta({
  id: 'InvitedRole',
  description: 'Roles that can be given. There is one owner; ownership is transferred.',
})
export type InvitedRole = z.infer<typeof InvitedRole>

export const ServiceAccountRole = z.enum(['admin', 'appManager', 'developer', 'viewer', 'auditor']).meta({
  id: 'ServiceAccountRole',
  description: '`auditor`: reads the audit log and nothing else. The others as for members.',
})
export type ServiceAccountRole = z.infer<typeof ServiceAccountRole>

export const AppCollaboratorRole = z.enum(['admin', 'developer']).meta({
  id: 'AppCollaboratorRole',
  description: '`admin`: everything on the app. `developer`: releases and patches only.',
})
export type AppCollaboratorRole = z.infer<typeof AppCollaboratorRole>

export const OrganizationType = z.enum(['personal', 'team']).meta({ id: 'OrganizationType' })
export type OrganizationType = z.infer<typeof OrganizationType>

export const AuthProvider = z.enum(['google', 'microsoft', 'shorebird']).meta({
  id: 'AuthProvider',
  description: 'Who vouches for a person. `shorebird` is what the public clients call accounts of the service itself.',
})
export type AuthProvider = z.infer<typeof AuthProvider>

export const UploadMethod = z.enum(['multipart', 'resumable']).meta({
  id: 'UploadMethod',
  description: 'What the client is advised to use; the upload URL takes both.',
})
export type UploadMethod = z.infer<typeof UploadMethod>

export const ApiKeyPermission = z.enum(['full', 'release_and_patch']).meta({ id: 'ApiKeyPermission' })
export type ApiKeyPermission = z.infer<typeof ApiKeyPermission>

export const Plan = z.enum(['free', 'pro', 'business', 'enterprise']).meta({ id: 'Plan' })
export type Plan = z.infer<typeof Plan>
