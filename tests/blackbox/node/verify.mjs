// Verifies signed requests with npm's http-message-signatures. Reads {"keys": {keyid: jwk}, "requests": [{method, url,
// headers}]} from stdin and prints, one a request: true, or why not.
import { createPublicKey } from 'node:crypto'
import { createVerifier, httpbis } from 'http-message-signatures'

let text = ''
for await (const piece of process.stdin) text += piece
const { keys, requests } = JSON.parse(text)

const keyLookup = async ({ keyid }) => {
  if (!keys[keyid]) return null
  const key = createPublicKey({ key: keys[keyid], format: 'jwk' })
  return { id: keyid, algs: ['ed25519'], verify: createVerifier(key, 'ed25519') }
}

const told = []
for (const request of requests) {
  try {
    told.push((await httpbis.verifyMessage({ keyLookup, all: true }, request)) === true || 'not verified')
  } catch (fault) {
    told.push(String(fault))
  }
}
process.stdout.write(JSON.stringify(told))
