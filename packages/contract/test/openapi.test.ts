import { readFile } from 'node:fs/promises'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, it } from 'vitest'
import { createOpenApiDocument, errorTable, listErrorCodes, operationIds, type Route, routes } from '../src/index.ts'

const document = createOpenApiDocument()
const paths = document.paths as Record<string, Record<string, { responses: Record<string, { description: string }> }>>

describe('the OpenAPI document', () => {
  it('is OpenAPI 3.1.0 with version 1.0.0', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(document.info.version).toBe('1.0.0')
  })

  it('has nothing that a linter objects to', async () => {
    const config = await createConfig({
      extends: ['recommended'],
      // Probes and documents take no input that could be wrong.
      rules: { 'operation-4xx-response': 'off' },
    })
    const source = JSON.stringify(document)
    const problems = await lintFromString({ source, config, absoluteRef: 'openapi.json' })
    expect(problems.map(({ ruleId, message, location }) => ({ ruleId, message, at: location[0]?.pointer }))).toEqual([])
  })

  it.each(operationIds)('has %s with every error that it can answer', (operationId) => {
    const route: Route = routes[operationId]
    const operation = paths[route.path]?.[route.method.toLowerCase()]
    expect(operation).toMatchObject({ operationId })
    for (const code of listErrorCodes(route)) {
      expect(operation?.responses[errorTable[code].status]?.description).toContain(`\`${code}\``)
    }
  })

  it('is committed as openapi.json (npm run openapi)', async () => {
    const committed = await readFile(new URL('../../../openapi.json', import.meta.url), 'utf8')
    expect(JSON.parse(committed)).toEqual(JSON.parse(JSON.stringify(document)))
  })
})
