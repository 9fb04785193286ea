import { z } from 'zod'
import { defineRoute } from '../route.ts'
import {
  AddCollaboratorRequest,
  App,
  AppCollaborator,
  AppMetadata,
  Channel,
  CreateAppRequest,
  CreateChannelRequest,
  GetAppIconQuery,
  GetAppsResponse,
  UpdateAppRequest,
  UpdateCollaboratorRequest,
} from '../schemas/apps.ts'

const done = { status: 204 } as const

export const appRoutes = {
  listApps: defineRoute({
    method: 'GET',
    path: '/api/v1/apps',
    tag: 'Apps',
    summary: 'Apps of the caller',
    description: 'Every app that the caller may see, by organization or as a collaborator.',
    access: { by: 'bearer', permission: 'app.read', on: 'caller' },
    success: { status: 200, body: GetAppsResponse },
  }),
  createApp: defineRoute({
    method: 'POST',
    path: '/api/v1/apps',
    tag: 'Apps',
    summary: 'Create an app, with its channel `stable`',
    access: { by: 'bearer', permission: 'app.create', on: 'organization' },
    body: CreateAppRequest,
    success: { status: 200, body: App },
    audit: ['app.create'],
  }),
  getApp: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}',
    tag: 'Apps',
    summary: 'One app',
    access: { by: 'bearer', permission: 'app.read', on: 'app' },
    success: { status: 200, body: AppMetadata },
  }),
  getAppIcon: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/icon',
    tag: 'Apps',
    summary: "The app's launcher icon, a PNG",
    description:
      'Of the newest analyzed iOS release that has one, else of the newest Android release. 404 when none has. ' +
      '`Cache-Control: private, max-age=31536000, immutable`: its URL, `icon_url` of the app, changes with the release.',
    access: { by: 'bearer', permission: 'app.read', on: 'app' },
    query: GetAppIconQuery,
    success: { status: 200, contentType: 'image/png' },
  }),
  updateApp: defineRoute({
    method: 'PATCH',
    path: '/api/v1/apps/{appId}',
    tag: 'Apps',
    summary: 'Rename an app',
    access: { by: 'bearer', permission: 'app.update', on: 'app' },
    body: UpdateAppRequest,
    success: done,
    audit: ['app.update'],
  }),
  deleteApp: defineRoute({
    method: 'DELETE',
    path: '/api/v1/apps/{appId}',
    tag: 'Apps',
    summary: 'Delete an app with its releases, patches and artifacts',
    access: { by: 'bearer', permission: 'app.delete', on: 'app' },
    success: done,
    audit: ['app.delete'],
  }),
}

export const collaboratorRoutes = {
  listCollaborators: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/collaborators',
    tag: 'Collaborators',
    summary: 'Collaborators on an app',
    access: { by: 'bearer', permission: 'app.read', on: 'app' },
    success: { status: 200, body: z.array(AppCollaborator) },
  }),
  addCollaborator: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/collaborators',
    tag: 'Collaborators',
    summary: 'Add a collaborator by e-mail',
    description: 'Starts with the role `developer`. Adding somebody who is a collaborator already changes nothing.',
    access: { by: 'bearer', permission: 'collaborators.manage', on: 'app' },
    body: AddCollaboratorRequest,
    success: done,
    errors: ['user_not_found', 'plan_required', 'domain_not_allowed'],
    audit: ['app_collaborator.add'],
  }),
  updateCollaborator: defineRoute({
    method: 'PATCH',
    path: '/api/v1/apps/{appId}/collaborators/{collaboratorId}',
    tag: 'Collaborators',
    summary: 'Change the role of a collaborator',
    access: { by: 'bearer', permission: 'collaborators.manage', on: 'app' },
    body: UpdateCollaboratorRequest,
    success: done,
    audit: ['app_collaborator.role_update'],
  }),
  removeCollaborator: defineRoute({
    method: 'DELETE',
    path: '/api/v1/apps/{appId}/collaborators/{collaboratorId}',
    tag: 'Collaborators',
    summary: 'Remove a collaborator',
    access: { by: 'bearer', permission: 'collaborators.manage', on: 'app' },
    success: done,
    audit: ['app_collaborator.remove'],
  }),
}

export const channelRoutes = {
  listChannels: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/channels',
    tag: 'Channels',
    summary: 'Channels of an app',
    access: { by: 'bearer', permission: 'app.read', on: 'app' },
    success: { status: 200, body: z.array(Channel) },
  }),
  createChannel: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/channels',
    tag: 'Channels',
    summary: 'Create a channel',
    access: { by: 'bearer', permission: 'channel.create', on: 'app' },
    body: CreateChannelRequest,
    success: { status: 200, body: Channel },
    errors: ['channel_exists'],
    audit: ['channel.create'],
  }),
  deleteChannel: defineRoute({
    method: 'DELETE',
    path: '/api/v1/apps/{appId}/channels/{channelId}',
    tag: 'Channels',
    summary: 'Delete a channel',
    description: 'Its patches are then on no channel and offered to nobody. `stable` cannot be deleted.',
    access: { by: 'bearer', permission: 'channel.delete', on: 'app' },
    success: done,
    errors: ['channel_is_default'],
    audit: ['channel.delete'],
  }),
}
