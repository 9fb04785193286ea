import { describe, expect, it } from 'vitest'
import { judgeAnswer, nextExpiry, writeInvitationMail } from '../../src/invitations/rules.ts'

const now = new Date('2026-11-21T12:00:00Z')
const later = new Date(now.getTime() + 1)

describe('judgeAnswer', () => {
  it.each([
    ['accept', 'pending', later, null, 'answer'],
    ['accept', 'pending', now, null, 'gone'],
    ['accept', 'accepted', now, 1, 'repeat'],
    ['accept', 'accepted', later, 2, 'gone'],
    ['accept', 'accepted', later, null, 'gone'],
    ['accept', 'declined', later, null, 'gone'],
    ['accept', 'revoked', later, null, 'gone'],
    ['decline', 'pending', later, null, 'answer'],
    ['decline', 'pending', now, null, 'gone'],
    ['decline', 'declined', now, null, 'repeat'],
    ['decline', 'accepted', later, 1, 'gone'],
    ['decline', 'revoked', later, null, 'gone'],
  ] as const)('%s, when %s until %s, accepted by %s: %s', (answer, status, expires_at, accepted_by_user_id, result) => {
    expect(judgeAnswer({ status, expires_at, accepted_by_user_id }, { answer, userId: 1, now })).toBe(result)
  })
})

describe('nextExpiry', () => {
  it('is in seven days', () => {
    expect(nextExpiry(now)).toEqual(new Date('2026-11-28T12:00:00Z'))
  })
})

describe('writeInvitationMail', () => {
  const input = {
    email: 'ada@example.com',
    invitedBy: 'bob@example.com',
    organizationName: 'Acme',
    appName: undefined,
    role: 'appManager' as const,
    url: 'https://godwit.example/invitations/token',
    expiresAt: now,
  }

  it('says who invites, to what, as what, the link and until when', () => {
    const { to, subject, text } = writeInvitationMail(input)
    expect({ to, subject }).toEqual({ to: 'ada@example.com', subject: 'Invitation to the organization Acme' })
    expect(text).toContain('bob@example.com invites you to the organization Acme as an app manager.')
    expect(text).toContain('\nhttps://godwit.example/invitations/token\n')
    expect(text).toContain('2026-11-21 12:00 UTC')
  })

  it('names the app, and the organization when who invited has no e-mail', () => {
    const { text } = writeInvitationMail({ ...input, appName: 'Atlas', role: 'developer', invitedBy: undefined })
    expect(text).toContain('Acme invites you to the app Atlas of Acme as a developer.')
  })

  it('keeps a name with line breaks from looking like a part of the mail', () => {
    const organizationName = 'Acme\r\nBcc: all@example.com\n\nhttps://evil.example'
    const { subject, text } = writeInvitationMail({ ...input, organizationName })
    expect(subject).toBe('Invitation to the organization Acme Bcc: all@example.com https://evil.example')
    expect(text.split('\n')).toHaveLength(writeInvitationMail(input).text.split('\n').length)
  })
})
