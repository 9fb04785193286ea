import type { AuditEventName } from '@godwit/contract'
import { z } from 'zod'
import { staff } from '../audit/describe-actor.ts'
import { type Doer, recordEvent } from '../audit/record-event.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { unknownSource } from '../http/actor.ts'
import { deleteAllowedDomain, insertAllowedDomain, listAllowedDomains, lockOrganization } from './queries.ts'
import { isDomainAllowed } from './rules.ts'

const Domain = z
  .hostname()
  .max(253)
  .refine((value) => value.includes('.'))

/** Domains are the operator's to change, with a command: there is no request that it could have come from. */
const operator: Doer = { by: staff, from: unknownSource }

type DomainInput = { organizationId: number; domain: string }

/** From then on only e-mails of the domains in the list can be invited and added. Members stay as they are. */
export async function addAllowedDomain(deps: Pick<Deps, 'db' | 'clock'>, input: DomainInput): Promise<void> {
  await changeDomains(deps, input, 'org_allowed_domain.add', insertAllowedDomain)
}

/** Without the last one every e-mail may be invited again. */
export async function removeAllowedDomain(deps: Pick<Deps, 'db' | 'clock'>, input: DomainInput): Promise<void> {
  await changeDomains(deps, input, 'org_allowed_domain.remove', deleteAllowedDomain)
}

/** `change` tells whether it changed anything; what it left as it was is no event. */
async function changeDomains(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: DomainInput,
  operation: AuditEventName,
  change: (trx: Db, input: DomainInput) => Promise<boolean>,
): Promise<void> {
  const { organizationId } = input
  const domain = readDomainName(input.domain)
  await deps.db.transaction().execute(async (trx) => {
    if ((await lockOrganization(trx, input)) === undefined) {
      throw new AppError('not_found', `no organization has the id ${organizationId}`)
    }
    if (!(await change(trx, { organizationId, domain }))) return
    await recordEvent(deps, trx, operator, {
      operation,
      organizationId,
      resources: [
        { type: 'domain', uid: domain },
        { type: 'organization', uid: organizationId },
      ],
    })
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
