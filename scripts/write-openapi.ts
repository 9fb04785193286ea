import { writeFile } from 'node:fs/promises'
import { createOpenApiDocument } from '@godwit/contract'

await writeFile(new URL('../openapi.json', import.meta.url), `${JSON.stringify(createOpenApiDocument(), null, 2)}\n`)
