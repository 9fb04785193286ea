/** The health check of the image: ends with 0 when the server beside it answers. */
const port = process.env.PORT || '8080'
try {
  const response = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(4000) })
  process.exitCode = response.ok ? 0 : 1
} catch {
  process.exitCode = 1
}
