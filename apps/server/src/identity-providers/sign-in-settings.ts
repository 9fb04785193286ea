import { gitHubActionsIssuer } from '@godwit/contract'
import { z } from 'zod'
import { isLoopback } from '../is-loopback.ts'
import { List, splitList } from '../setting-list.ts'

const emailDomain = z.hostname().refine((value) => value.includes('.'), 'must be a domain')

const SignUp = z.union([
  z.enum(['open', 'invited']),
  z
    .string()
    .transform((value) => splitList(value.toLowerCase()))
    .pipe(z.array(emailDomain).min(1, 'must be open, invited, or e-mail domains separated by commas')),
])
export type SignUpPolicy = z.output<typeof SignUp>

/** https, or http on this machine for trials. */
const IssuerUrl = z.url({ protocol: /^https?$/ }).refine((value) => {
  const url = URL.parse(value)
  return url?.protocol === 'https:' || (url !== null && isLoopback(url.hostname))
}, 'must be https')

/** Whom people and CI jobs are believed by. */
export const signInSettings = {
  GODWIT_SIGN_UP: SignUp.default('open'),
  GODWIT_GOOGLE_CLIENT_ID: z.string().optional(),
  GODWIT_GOOGLE_CLIENT_SECRET: z.string().optional(),
  GODWIT_MICROSOFT_CLIENT_ID: z.string().optional(),
  GODWIT_MICROSOFT_CLIENT_SECRET: z.string().optional(),
  GODWIT_MICROSOFT_TENANT: z
    .string()
    .regex(/^[A-Za-z0-9.-]+$/)
    .default('common'),
  GODWIT_OIDC_ISSUER: IssuerUrl.optional(),
  GODWIT_OIDC_CLIENT_ID: z.string().optional(),
  GODWIT_OIDC_CLIENT_SECRET: z.string().optional(),
  GODWIT_OIDC_NAME: z.string().max(64).default('single sign-on'),
  GODWIT_CI_ISSUERS: List.pipe(z.array(IssuerUrl)).default([gitHubActionsIssuer]),
}

const Settings = z.object(signInSettings)
type Settings = z.output<typeof Settings>

/** An OpenID Connect provider that people sign in with. */
export type IdentityProviderConfig = {
  /** Part of the URLs of its sign-in. */
  id: 'google' | 'microsoft' | 'oidc'
  /** What its button says. */
  name: string
  issuer: string
  clientId: string
  /** undefined: a public client. */
  clientSecret: string | undefined
}

/** A provider that is half there is told at start. */
export function requireWholeProviders(
  settings: Settings,
  require: (name: keyof Settings, reason: string) => void,
): void {
  if (settings.GODWIT_GOOGLE_CLIENT_ID !== undefined)
    require('GODWIT_GOOGLE_CLIENT_SECRET', 'is needed with GODWIT_GOOGLE_CLIENT_ID')
  if (settings.GODWIT_MICROSOFT_CLIENT_ID !== undefined)
    require('GODWIT_MICROSOFT_CLIENT_SECRET', 'is needed with GODWIT_MICROSOFT_CLIENT_ID')
  if (settings.GODWIT_OIDC_ISSUER !== undefined) require('GODWIT_OIDC_CLIENT_ID', 'is needed with GODWIT_OIDC_ISSUER')
  if (settings.GODWIT_OIDC_CLIENT_ID !== undefined)
    require('GODWIT_OIDC_ISSUER', 'is needed with GODWIT_OIDC_CLIENT_ID')
}

export function listIdentityProviders(settings: Settings): IdentityProviderConfig[] {
  const providers: (Omit<IdentityProviderConfig, 'clientId'> & { clientId: string | undefined })[] = [
    {
      id: 'google',
      name: 'Google',
      issuer: 'https://accounts.google.com',
      clientId: settings.GODWIT_GOOGLE_CLIENT_ID,
      clientSecret: settings.GODWIT_GOOGLE_CLIENT_SECRET,
    },
    {
      id: 'microsoft',
      name: 'Microsoft',
      issuer: `https://login.microsoftonline.com/${settings.GODWIT_MICROSOFT_TENANT}/v2.0`,
      clientId: settings.GODWIT_MICROSOFT_CLIENT_ID,
      clientSecret: settings.GODWIT_MICROSOFT_CLIENT_SECRET,
    },
    {
      id: 'oidc',
      name: settings.GODWIT_OIDC_NAME,
      issuer: settings.GODWIT_OIDC_ISSUER ?? '',
      clientId: settings.GODWIT_OIDC_CLIENT_ID,
      clientSecret: settings.GODWIT_OIDC_CLIENT_SECRET,
    },
  ]
  return providers.flatMap(({ clientId, ...provider }) => (clientId === undefined ? [] : [{ ...provider, clientId }]))
}
