import { defineRoute } from '../route.ts'
import { ActivityImportLine, ImportActivityResponse } from '../schemas/activity.ts'
import {
  GetActiveHoursResponse,
  GetActivityHeatmapResponse,
  GetNewDevicesQuery,
  GetNewDevicesResponse,
  GetPatchAdoptionQuery,
  GetPatchAdoptionResponse,
  GetPatchEventCountsQuery,
  GetPatchEventCountsResponse,
  GetReleasePatchEventCountsQuery,
  GetReleasePatchEventCountsResponse,
  GetUniqueUsersQuery,
  GetUniqueUsersResponse,
  GetVersionDistributionResponse,
  maxMetricsPoints,
} from '../schemas/metrics.ts'

const tag = 'Metrics'
const readMetrics = { by: 'bearer', permission: 'metrics.read', on: 'app' } as const
const updateApp = { by: 'bearer', permission: 'app.update', on: 'app' } as const

const windowDescription =
  'Windows are made of whole hours (UTC); those older than the hourly retention of whole days. `range` says what was counted. ' +
  `An answer that would have more than ${maxMetricsPoints} points is refused: 400 names the granularity.`

export const metricsRoutes = {
  getVersionDistribution: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/version-distribution',
    tag,
    summary: 'Devices by release',
    description:
      'Every device that was seen in the active window counts once, on the release that it was last seen with.',
    access: readMetrics,
    success: { status: 200, body: GetVersionDistributionResponse },
  }),
  getPatchAdoption: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/patch-adoption',
    tag,
    summary: 'How far the patches of a release have come',
    description: `Patch N counts the devices that run patch N or a higher one, so that counts never rise with the number. ${windowDescription}`,
    access: readMetrics,
    query: GetPatchAdoptionQuery,
    success: { status: 200, body: GetPatchAdoptionResponse },
  }),
  getUniqueUsers: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/unique-users',
    tag,
    summary: 'Distinct devices in a window, and in the window before',
    description: windowDescription,
    access: readMetrics,
    query: GetUniqueUsersQuery,
    success: { status: 200, body: GetUniqueUsersResponse },
  }),
  getNewDevices: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/new-devices',
    tag,
    summary: 'Devices that were seen for the first time',
    access: readMetrics,
    query: GetNewDevicesQuery,
    success: { status: 200, body: GetNewDevicesResponse },
  }),
  getActiveHours: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/active-hours',
    tag,
    summary: 'Devices by hour of the day, and the quiet hours to publish in',
    access: readMetrics,
    success: { status: 200, body: GetActiveHoursResponse },
  }),
  getActivityHeatmap: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/activity-heatmap',
    tag,
    summary: 'Devices by day of the week and hour of the day',
    access: readMetrics,
    success: { status: 200, body: GetActivityHeatmapResponse },
  }),
  getPatchInstalls: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/patch-installs',
    tag,
    summary: 'Patch installs that devices reported',
    description: windowDescription,
    access: readMetrics,
    query: GetPatchEventCountsQuery,
    success: { status: 200, body: GetPatchEventCountsResponse },
  }),
  getPatchDownloads: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/metrics/patch-downloads',
    tag,
    summary: 'Patch downloads that devices reported',
    description: windowDescription,
    access: readMetrics,
    query: GetPatchEventCountsQuery,
    success: { status: 200, body: GetPatchEventCountsResponse },
  }),
  getReleasePatchInstalls: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/releases/{releaseId}/metrics/patch-installs',
    tag,
    summary: 'Patch installs on one release',
    description: windowDescription,
    access: readMetrics,
    query: GetReleasePatchEventCountsQuery,
    success: { status: 200, body: GetReleasePatchEventCountsResponse },
  }),
  getReleasePatchDownloads: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/releases/{releaseId}/metrics/patch-downloads',
    tag,
    summary: 'Patch downloads on one release',
    description: windowDescription,
    access: readMetrics,
    query: GetReleasePatchEventCountsQuery,
    success: { status: 200, body: GetReleasePatchEventCountsResponse },
  }),
  importActivity: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/activity/import',
    tag,
    summary: 'Import what was recorded elsewhere',
    description:
      'Newline-delimited JSON of any length, one observation a line. A line that is wrong is reported and does not stop the rest; the same line sent again adds nothing. What is imported counts everywhere but in patch installs and downloads. Of a request that breaks off, what was taken stays: send it again.',
    access: updateApp,
    lines: ActivityImportLine,
    success: { status: 200, body: ImportActivityResponse },
    audit: { none: 'history is no change of the app' },
  }),
  deleteDevice: defineRoute({
    method: 'DELETE',
    path: '/api/v1/apps/{appId}/devices/{clientId}',
    tag,
    summary: 'Delete what is recorded of one device',
    description: 'It leaves every count. 404 when nothing is recorded of it. A device that goes on asking is new.',
    access: updateApp,
    success: { status: 204 },
    audit: { none: 'the audit log would keep the id that was to be removed' },
  }),
}
