import { z } from 'zod'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { deleteAllowedDomain, insertAllowedDomain, listAllowedDomains, lockOrganization } from './queries.ts'
import { isDomainAllowed } from './rules.ts'

const Domain = z
  .hostname()
  .max(253)
  .refine((value) => value.includes('.'))

/** From then on only e-mails of the domains in the list can be invited and added. Members stay as they are. */
export async function addAllowedDomain(
  deps: Pick<Deps, 'db'>,
  input: { organizationId: number; domain: string },
): Promise<void> {
  const domain = readDomainName(input.domain)
  await deps.db.transaction().execute(async (trx) => {
    if ((await lockOrganization(trx, input)) === undefined) throw new AppError('not_found')
    await insertAllowedDomain(trx, { organizationId: input.organizationId, domain })
  })
}

/** Without the last one every e-mail may be invited again. */
export async function removeAllowedDomain(
  deps: Pick<Deps, 'db'>,
  input: { organizationId: number; domain: string },
): Promise<void> {
  const domain = readDomainName(input.domain)
  await deps.db.transaction().execute(async (trx) => {
    if ((await lockOrganization(trx, input)) === undefined) throw new AppError('not_found')
    await deleteAllowedDomain(trx, { organizationId: input.organizationId, domain })
  })
}

export async function requireAllowedDomain(db: Db, input: { organizationId: number; email: string }): Promise<void> {
  const domains = await listAllowedDomains(db, input)
  if (isDomainAllowed(domains, input.email)) return
  throw new AppError('domain_not_allowed', `email: must be of one of these domains: ${domains.join(', ')}`)
}

function readDomainName(value: string): string {
  const domain = value.trim().toLowerCase()
  if (!Domain.safeParse(domain).success) throw new AppError('invalid_request', 'domain: must be a domain')
  return domain
}
