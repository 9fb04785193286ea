import { z } from 'zod'

export const DiagnosticsUploadResponse = z
  .object({ upload_url: z.string().meta({ description: 'Signed URL; takes a POST of up to 16 MB and discards it.' }) })
  .meta({ id: 'DiagnosticsUploadResponse' })

export const DiagnosticsDownloadResponse = z
  .object({ download_url: z.string().meta({ description: 'Signed URL; answers exactly 16,000,000 bytes.' }) })
  .meta({ id: 'DiagnosticsDownloadResponse' })

export const HealthResponse = z.object({ status: z.enum(['ok', 'unavailable']) }).meta({ id: 'HealthResponse' })

export const ApiCatalog = z
  .object({
    linkset: z.array(
      z.object({
        anchor: z.string(),
        'service-desc': z.array(z.object({ href: z.string(), type: z.string() })),
        status: z.array(z.object({ href: z.string() })),
      }),
    ),
  })
  .meta({ id: 'ApiCatalog', description: 'RFC 9727 catalog as an RFC 9264 linkset.' })
