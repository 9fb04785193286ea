import type { Client } from '@godwit/sdk'

type Ask = (api: Client, appId: string) => Promise<unknown>

/** Every kind of question, to be asked in turn. */
export const queries: Ask[] = [
  (api, appId) => api.getVersionDistribution({ params: { appId } }),
  (api, appId) => api.getPatchAdoption({ params: { appId } }),
  (api, appId) => api.getPatchAdoption({ params: { appId }, query: { granularity: 'day' } }),
  (api, appId) => api.getPatchAdoption({ params: { appId }, query: { granularity: 'hour' } }),
  (api, appId) => api.getUniqueUsers({ params: { appId }, query: { granularity: 'hour', group_by: 'platform' } }),
  (api, appId) => api.getUniqueUsers({ params: { appId }, query: { group_by: 'release_version' } }),
  (api, appId) => api.getNewDevices({ params: { appId } }),
  (api, appId) => api.getActiveHours({ params: { appId } }),
  (api, appId) => api.getActivityHeatmap({ params: { appId } }),
  (api, appId) => api.getPatchInstalls({ params: { appId }, query: { granularity: 'hour', group_by: 'release' } }),
  (api, appId) => api.getPatchDownloads({ params: { appId }, query: { granularity: 'day' } }),
]
