import { z } from 'zod'
import { ApiKeyPermission } from './enums.ts'
import { Int64, Timestamp, text } from './primitives.ts'

export const ApiKeyExpiry = z.enum(['30d', '90d', '1y', 'none']).meta({
  id: 'ApiKeyExpiry',
  description: 'How long the key works, from its creation: 30 days, 90 days, 365 days, or for ever.',
})
export type ApiKeyExpiry = z.infer<typeof ApiKeyExpiry>

const keyName = text({ max: 128 }).meta({ description: 'What the key is for.' })

const keyFields = {
  id: Int64.meta({ description: 'What is revoked.' }),
  name: keyName,
  prefix: z.string().meta({ description: 'How the key begins, to tell it from others.' }),
  created_at: Timestamp,
  expires_at: Timestamp.nullable().meta({ description: 'null: never.' }),
  last_used_at: Timestamp.nullable().meta({ description: 'To the minute. null: never used.' }),
}
const secret = { key: z.string().meta({ description: 'The key itself. It is shown only here and kept nowhere.' }) }

export const ApiKey = z
  .object({ ...keyFields, permission: ApiKeyPermission })
  .meta({ id: 'ApiKey', description: 'A key of a person.' })
export type ApiKey = z.infer<typeof ApiKey>

export const CreatedApiKey = z.object({ ...ApiKey.shape, ...secret }).meta({ id: 'CreatedApiKey' })

export const GetApiKeysResponse = z.object({ api_keys: z.array(ApiKey) }).meta({ id: 'GetApiKeysResponse' })

export const CreateApiKeyRequest = z
  .object({
    name: keyName,
    expires_in: ApiKeyExpiry.default('1y'),
    permission: ApiKeyPermission.default('full').meta({
      description: "`full`: all of the account's rights. `release_and_patch`: releases, patches and channels only.",
    }),
  })
  .meta({ id: 'CreateApiKeyRequest' })

export const ServiceAccountKey = z
  .object(keyFields)
  .meta({ id: 'ServiceAccountKey', description: 'A key of a service account: it may do what the role allows.' })
export type ServiceAccountKey = z.infer<typeof ServiceAccountKey>

export const CreatedServiceAccountKey = z
  .object({ ...ServiceAccountKey.shape, ...secret })
  .meta({ id: 'CreatedServiceAccountKey' })

export const GetServiceAccountKeysResponse = z
  .object({ keys: z.array(ServiceAccountKey) })
  .meta({ id: 'GetServiceAccountKeysResponse' })

export const CreateServiceAccountKeyRequest = z
  .object({ name: keyName, expires_in: ApiKeyExpiry.default('1y') })
  .meta({ id: 'CreateServiceAccountKeyRequest' })
