import type { Config } from '../config.ts'
import { isLoopback } from '../is-loopback.ts'
import type { UrlSigner } from '../transfers/signed-urls.ts'
import { compareClocks } from './check-database.ts'
import { describe, type Finding } from './finding.ts'
import { randomHex } from './random-hex.ts'

const check = 'public URL'
const timeoutMs = 5000
const badSignature = 403
const notFound = 404
/** The Date of HTTP is that of the second, and may be cached for one. */
const dateToleranceMs = 2000

type Settings = Pick<Config, 'publicUrl' | 'trustedProxies'>

/**
 * Whether clients and devices get from there to this installation, and what they find there (`lookInside`). Without `urls`
 * only whether a Godwit answers.
 */
export async function checkPublicUrl(
  settings: Settings,
  urls: UrlSigner | undefined,
  lookInside: () => Promise<Finding[]>,
): Promise<Finding[]> {
  const findings = checkScheme(settings)
  try {
    const response = await get(`${settings.publicUrl}/readyz`)
    findings.push(readReadiness(settings, response), ...checkDate(response))
    const identity = response.ok && urls !== undefined ? await checkIdentity(settings, urls) : undefined
    if (identity !== undefined) findings.push(identity)
    if (identity?.result === 'ok') findings.push(...(await lookInside()))
  } catch (error) {
    const mend =
      'Start the server; see that DNS, firewall, certificate and reverse proxy lead from GODWIT_PUBLIC_URL to it.'
    findings.push({
      check,
      result: 'failure',
      found: `${settings.publicUrl} cannot be reached from here: ${describe(error)}`,
      mend,
    })
  }
  return findings
}

function checkScheme({ publicUrl, trustedProxies }: Settings): Finding[] {
  const { protocol, hostname } = new URL(publicUrl)
  if (isLoopback(hostname)) {
    const found = `${publicUrl} is this machine alone`
    return [{ check, result: 'warning', found, mend: 'Set GODWIT_PUBLIC_URL to the address that phones reach.' }]
  }
  if (protocol === 'http:') {
    const mend = 'Put a reverse proxy with TLS in front, and set GODWIT_PUBLIC_URL to its https address.'
    return [{ check, result: 'failure', found: `${publicUrl} sends passwords and keys in the clear`, mend }]
  }
  if (trustedProxies.length > 0) return []
  const found = 'GODWIT_TRUSTED_PROXIES is not set: all clients seem to have the address of the proxy'
  return [{ check, result: 'warning', found, mend: 'Set it to the address of the reverse proxy.' }]
}

function readReadiness({ publicUrl }: Settings, { status }: Response): Finding {
  if (status === 200) return { check, result: 'ok', found: `${publicUrl} is reachable from here, and ready` }
  const mend = 'See what answers there: a redirect, a page of the proxy, or a server that is starting or stopping.'
  return { check, result: 'failure', found: `${publicUrl}/readyz answers ${status}`, mend }
}

/** Only who has the secret of this database takes the signature; then there is no such blob. */
async function checkIdentity({ publicUrl }: Settings, urls: UrlSigner): Promise<Finding> {
  const { status } = await get(urls.sign('download', randomHex()))
  if (status === notFound) return { check, result: 'ok', found: `${publicUrl} is this installation` }
  const found =
    status === badSignature
      ? `${publicUrl} is another installation of Godwit, or something changes the query on the way`
      : `${publicUrl} answers ${status} to a download`
  return {
    check,
    result: 'failure',
    found,
    mend: 'Let GODWIT_PUBLIC_URL and the reverse proxy lead to this server, unchanged.',
  }
}

function checkDate(response: Response): Finding[] {
  const theirMs = Date.parse(response.headers.get('date') ?? '')
  return Number.isNaN(theirMs)
    ? []
    : [compareClocks('that behind the public URL', theirMs, Date.now(), dateToleranceMs)]
}

async function get(url: string): Promise<Response> {
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) })
  await response.body?.cancel()
  return response
}
