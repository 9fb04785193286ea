import { registerHooks } from 'node:module'

/** Says once when the libraries of OpenTelemetry are read. The API alone is part of prom-client. */
let hasSaid = false
registerHooks({
  load: (url, context, next) => {
    if (!hasSaid && url.includes('/@opentelemetry/sdk-trace/')) {
      hasSaid = true
      console.log('OpenTelemetry is read')
    }
    return next(url, context)
  },
})
