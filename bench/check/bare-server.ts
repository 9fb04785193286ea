import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * The least that a Node server can do for a check: reads the body, parses it, answers bytes made beforehand (argv).
 * Prints its port.
 */
const answer = Buffer.from(process.argv[2] ?? '{}')

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    JSON.parse(Buffer.concat(chunks).toString('utf8'))
    response.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': answer.length })
    response.end(answer)
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
process.on('SIGTERM', () => process.exit())
