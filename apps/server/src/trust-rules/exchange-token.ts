import { randomUUID } from 'node:crypto'
import { violatesForeignKey } from '../db/errors.ts'
import type { Deps } from '../deps.ts'
import type { RequestSource } from '../http/actor.ts'
import { OAuthError, type OAuthErrorCode } from '../oauth-error.ts'
import { type CiJob, readCiJob } from './ci-job.ts'
import { accessTokenType, readServiceAccountId, type TokenExchange } from './exchange-request.ts'
import { IssuerUnavailableError } from './issuer-keys.ts'
import { insertFederatedSession, listRulesOfRepository } from './queries.ts'
import { recordSignIn } from './record-sign-in.ts'
import { chooseRule, trustsJob } from './rules.ts'
import { type CiTokenClaims, peekClaims, verifyCiToken } from './verify-ci-token.ts'

type ExchangeDeps = Pick<Deps, 'config' | 'db' | 'clock' | 'log' | 'accessTokens'>

export type ExchangedToken = {
  access_token: string
  issued_token_type: typeof accessTokenType
  token_type: 'Bearer'
  expires_in: number
}

/** A subject token that is good for nothing here (RFC 8693, 2.2.2). */
const refusedToken: OAuthErrorCode = 'invalid_request'

/**
 * A CI job gives the token of its CI system and gets one that is good for the service account that trusts the job
 * (RFC 8693). What it gives works once.
 */
export async function exchangeToken(deps: ExchangeDeps, input: TokenExchange): Promise<ExchangedToken> {
  try {
    const serviceAccountId = readServiceAccountId(input, deps.config.publicUrl)
    const claims = await verify(deps, input.subjectToken)
    const job = readCiJob(claims)
    if (job === undefined) {
      throw new OAuthError(
        refusedToken,
        'subject_token: it does not describe a job of a workflow in its own repository',
      )
    }
    const rule = await findRule(deps, job, serviceAccountId)
    return await signIn(deps, { rule, job, claims, source: input.source })
  } catch (error) {
    if (error instanceof OAuthError) logRefusal(deps, input.subjectToken, error)
    throw error
  }
}

async function verify(deps: ExchangeDeps, token: string): Promise<CiTokenClaims> {
  const { ciIssuers: issuers, publicUrl: audience } = deps.config
  try {
    const verdict = await verifyCiToken(token, { issuers, audience, now: deps.clock() })
    if ('refusal' in verdict) throw new OAuthError(refusedToken, `subject_token: ${verdict.refusal}`)
    return verdict.claims
  } catch (error) {
    if (!(error instanceof IssuerUnavailableError)) throw error
    deps.log.warn({ err: error }, 'the issuer of a CI token does not answer')
    throw new OAuthError('temporarily_unavailable', `${error.message}; try again`)
  }
}

async function findRule(deps: ExchangeDeps, job: CiJob, serviceAccountId: number | undefined) {
  const rules = await listRulesOfRepository(deps.db, job)
  const choice = chooseRule(
    rules.filter((rule) => trustsJob(rule, job)),
    serviceAccountId,
  )
  if ('rule' in choice) return choice.rule
  if (choice.refusal === 'none') throw noRule(job)
  throw new OAuthError(
    'invalid_request',
    'service_account_id: several service accounts trust this job; say which one is meant',
  )
}

/** Repeats what the token says, so that it can be compared with the rule, and nothing of what rules there are. */
function noRule(job: CiJob): OAuthError {
  const environment = job.environment === undefined ? 'no environment' : `environment ${job.environment}`
  return new OAuthError(
    refusedToken,
    `no trust rule lets this job in: repository ${job.repository}, workflow ${job.workflowPath}, ${environment}, ` +
      `ref ${job.ref ?? 'none'}`,
  )
}

async function signIn(
  deps: ExchangeDeps,
  input: {
    rule: Awaited<ReturnType<typeof findRule>>
    job: CiJob
    claims: CiTokenClaims
    source: RequestSource
  },
): Promise<ExchangedToken> {
  const { rule, job, claims, source } = input
  const id = randomUUID()
  const createdAt = deps.clock()
  // Signed first: were it to fail afterwards, the job's token would be used up for nothing.
  const { token, expiresInSeconds } = await deps.accessTokens.sign({
    sub: String(rule.service_account_id),
    sid: id,
    kind: 'federated',
  })
  const expiresAt = new Date(createdAt.getTime() + expiresInSeconds * 1000)
  const session = { id, trustRuleId: rule.id, tokenId: claims.jti, job, createdAt, expiresAt }
  await deps.db.transaction().execute(async (trx) => {
    const isFirstUse = await insertFederatedSession(trx, session).catch((error: unknown) => {
      // The rule was deleted at the same time.
      if (violatesForeignKey(error)) throw noRule(job)
      throw error
    })
    if (!isFirstUse) throw new OAuthError(refusedToken, 'subject_token: it was used already')
    await recordSignIn(deps, trx, { rule, job, source })
  })
  const { repository, workflowRef, runId } = job
  deps.log.info({ session: id, trustRule: rule.id, repository, workflowRef, runId }, 'a CI job signed in')
  return { access_token: token, issued_token_type: accessTokenType, token_type: 'Bearer', expires_in: expiresInSeconds }
}

/** What an attempt claimed to be, whether or not that is true. */
function logRefusal(deps: ExchangeDeps, token: string, error: OAuthError): void {
  const claims = peekClaims(token) ?? {}
  const fields = {
    reason: error.description,
    issuer: shorten(claims.iss),
    repository: shorten(claims.repository ?? claims.project_path),
    workflowRef: shorten(claims.workflow_ref ?? claims.ci_config_ref_uri),
  }
  deps.log.warn(fields, 'a CI job was refused')
}

function shorten(claim: unknown): string | undefined {
  return typeof claim === 'string' ? claim.slice(0, 256) : undefined
}
