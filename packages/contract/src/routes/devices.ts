import { defineRoute } from '../route.ts'
import { CreatePatchEventRequest, PatchCheckRequest, PatchCheckResponse } from '../schemas/devices.ts'

const tag = 'Devices'

export const deviceRoutes = {
  checkPatch: defineRoute({
    method: 'POST',
    path: '/api/v1/patches/check',
    tag,
    summary: 'Ask for the patch that this device should run',
    description:
      'Answered from memory. An unknown app, version, channel or arch is a 200 with `patch_available: false`. Limited per client_id and app, never per address.',
    access: { by: 'nobody' },
    body: PatchCheckRequest,
    success: { status: 200, body: PatchCheckResponse },
    errors: ['rate_limited', 'unavailable', 'internal'],
    audit: { none: 'a device asks, nothing changes' },
  }),
  createPatchEvent: defineRoute({
    method: 'POST',
    path: '/api/v1/patches/events',
    tag,
    summary: 'Report what happened to a patch on this device',
    description: 'Answered after the event is stored. The same event sent again is stored once.',
    access: { by: 'nobody' },
    body: CreatePatchEventRequest,
    success: { status: 204 },
    errors: ['rate_limited', 'unavailable', 'internal'],
    audit: { none: 'devices are no actors; what they report is in the metrics' },
  }),
}
