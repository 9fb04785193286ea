import type { FastifyRequest } from 'fastify'
import type { Actor } from '../http/actor.ts'
import { readSource } from '../http/request-source.ts'
import { toCaller } from '../sessions/caller-of-session.ts'
import type { BrowserSession } from './browser-session.ts'

/** Who answers a page, as actions and the audit log know them. */
export function toActor(session: BrowserSession, request: FastifyRequest): Actor {
  return { ...toCaller(session), source: readSource(request) }
}
