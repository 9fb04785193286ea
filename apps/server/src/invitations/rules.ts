import type { InvitedRole } from '@godwit/contract'
import type { Mail } from '../jobs/jobs.ts'

const lifetimeMs = 7 * 24 * 60 * 60 * 1000

export function nextExpiry(now: Date): Date {
  return new Date(now.getTime() + lifetimeMs)
}

type State = {
  status: 'pending' | 'accepted' | 'declined' | 'revoked'
  expires_at: Date
  accepted_by_user_id: number | null
}

/** What an answer to an invitation does: something, nothing because it was given before, or it comes too late. */
export function judgeAnswer(
  invitation: State,
  input: { answer: 'accept' | 'decline'; userId: number; now: Date },
): 'answer' | 'repeat' | 'gone' {
  const { status } = invitation
  if (status === 'pending') return invitation.expires_at > input.now ? 'answer' : 'gone'
  if (input.answer === 'decline') return status === 'declined' ? 'repeat' : 'gone'
  return status === 'accepted' && invitation.accepted_by_user_id === input.userId ? 'repeat' : 'gone'
}

const roleNames: Record<InvitedRole, string> = {
  admin: 'an admin',
  appManager: 'an app manager',
  developer: 'a developer',
  viewer: 'a viewer',
}

export function writeInvitationMail(input: {
  email: string
  invitedBy: string | undefined
  organizationName: string
  appName: string | undefined
  role: InvitedRole
  url: string
  expiresAt: Date
}): Mail {
  const organization = toOneLine(input.organizationName)
  const target =
    input.appName === undefined
      ? `the organization ${organization}`
      : `the app ${toOneLine(input.appName)} of ${organization}`
  const expiry = `${input.expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  const lines = [
    `${input.invitedBy ?? organization} invites you to ${target} as ${roleNames[input.role]}.`,
    '',
    `Accept or decline until ${expiry}:`,
    input.url,
    '',
    'The link is for you alone. If you did not expect this mail, you need not do anything.',
    '',
  ]
  return { to: input.email, subject: `Invitation to ${target}`, text: lines.join('\n') }
}

/** Names are chosen by people: one with a line break must not look like a part of the mail. */
function toOneLine(name: string): string {
  return name.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
}
