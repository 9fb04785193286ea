import { TOTP } from 'otpauth'
import { setPassword } from '../../src/passwords/actions.ts'
import { type Browser, createBrowser, readHiddenFields } from '../support/browser.ts'
import type { TestService } from '../support/test-service.ts'

export const password = 'four short words here'

export type Member = { userId: number; email: string; browser: Browser }

let members = 0

/** An account with a password, and a browser that is not signed in. */
export async function createMember(service: TestService): Promise<Member> {
  members += 1
  const { userId, email } = await service.createAccount({ email: `member-${members}@example.com` })
  await setPassword(service.deps, { userId, password })
  return { userId, email, browser: createBrowser(service.baseUrl) }
}

export async function signIn(member: Member, browser: Browser = member.browser) {
  return await browser.submit('/sign-in', '/sign-in', { email: member.email, password })
}

/** An account whose browser is signed in. */
export async function createSignedInMember(service: TestService): Promise<Member> {
  const member = await createMember(service)
  const answer = await signIn(member)
  if (answer.status !== 303) throw new Error(`sign-in failed: ${answer.status} ${answer.error}`)
  return member
}

/** Turns the second factor on with the pages, and returns what shows codes. */
export async function turnOnSecondFactor(member: Member, clock = () => new Date()): Promise<(at: Date) => string> {
  const page = '/account/second-factor'
  const { html } = await member.browser.submit(page, `${page}/start`, { current_password: password })
  const secret = (/<code>([A-Z2-7 ]+)<\/code>/.exec(html)?.[1] ?? '').replaceAll(' ', '')
  const showCode = (at: Date) => new TOTP({ secret }).generate({ timestamp: at.getTime() })
  const fields = { ...readHiddenFields(html, `${page}/confirm`), current_password: password, code: showCode(clock()) }
  const answer = await member.browser.post(`${page}/confirm`, fields)
  if (answer.status !== 303) throw new Error(`the second factor is not on: ${answer.status} ${answer.error}`)
  return showCode
}
