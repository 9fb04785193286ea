import { listPathParameters, type OperationId, operationIds, type Route, routes } from '@godwit/contract'
import type { TestService } from '../support/test-service.ts'

/** What reading changes by itself, and which address an account was made at. */
const volatileFields = new Set(['last_used_at', 'jwt_issuer'])

/** Every answer that this caller can read about these things, by operation, as if all services had the same address. */
export async function readAnswers(
  service: TestService,
  input: { token: string; params: Record<string, string | number>; only?: OperationId },
): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {}
  for (const id of chooseOperations(input.params)) {
    if (input.only !== undefined && input.only !== id) continue
    const path = routes[id].path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(input.params[name]))
    const headers = { authorization: `Bearer ${input.token}` }
    const response = await fetch(`${service.baseUrl}${path}`, { headers })
    const text = (await response.text()).replaceAll(service.baseUrl, 'http://the-service')
    answers[id] = [response.status, JSON.parse(text, (key, value) => (volatileFields.has(key) ? undefined : value))]
  }
  return answers
}

/** The audit log first: reading some of the others leaves events in it. */
function chooseOperations(params: Record<string, unknown>) {
  const readable = operationIds.filter((id) => {
    const { method, path, access }: Route = routes[id]
    return method === 'GET' && access.by === 'bearer' && listPathParameters(path).every((name) => name in params)
  })
  return readable
    .filter((id) => id !== 'getAppIcon')
    .sort((a, b) => Number(b === 'listAuditLogs') - Number(a === 'listAuditLogs'))
}

/** The bytes behind every URL in the answers, by the URL without its host. */
export async function downloadAll(service: TestService, answers: unknown): Promise<Map<string, string>> {
  const urls = JSON.stringify(answers).matchAll(/http:\/\/[^"\\/]+(\/downloads\/[^"\\]+)/g)
  const bytes = new Map<string, string>()
  for (const [, path = ''] of urls) {
    const response = await fetch(`${service.baseUrl}${path}`)
    const body = Buffer.from(await response.arrayBuffer())
    bytes.set(path, response.status === 200 ? body.toString('hex') : String(response.status))
  }
  return bytes
}
