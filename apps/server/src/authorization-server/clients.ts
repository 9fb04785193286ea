import type { ClientMetadata } from 'oidc-provider'

export const consoleClientId = 'godwit-console'
export const nativeClientId = 'godwit-cli'

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** Our own clients. Neither can keep a secret, so that both prove themselves by PKCE (RFC 7636). */
export function listClients(publicUrl: string): ClientMetadata[] {
  return [
    {
      client_id: consoleClientId,
      client_name: 'Godwit console',
      application_type: 'web',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: [`${publicUrl}/console/callback`],
      post_logout_redirect_uris: [`${publicUrl}/console`],
    },
    {
      client_id: nativeClientId,
      client_name: 'Godwit command line',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token', deviceGrant],
      response_types: ['code'],
      // Any port of the loopback interface (RFC 8252, 7.3).
      redirect_uris: ['http://127.0.0.1/callback', 'http://[::1]/callback'],
    },
  ]
}
