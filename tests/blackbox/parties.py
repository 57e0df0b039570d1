"""The three parties a test plays: the requesting agent, the owner with her device key, and the resource server
at the protection API. Every address comes from a published document; only the ready line's URLs are given. A
method that must succeed asserts it, and one that may be refused returns the response."""

import json
import time
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from wire import (
    Key, Response, b64, challenges, compact_jws, fetch_json, mcp_body, mcp_headers, open_jws, send, s256, sign, unb64,
    verify_jws,
)

UMA_TICKET = "urn:ietf:params:oauth:grant-type:uma-ticket"
AGREEMENT_FORMATS = (
    "urn:uma4agents:format:myterms-agreement-v1+jws",
    "https://u4a.ai/spec/terms/1.0#myterms-agreement-v1+jws",
)
FORM = ("Content-Type", "application/x-www-form-urlencoded")
JSON = ("Content-Type", "application/json")
ECHOED = ("template_id", "terms_uri", "purpose", "scope", "expires_in", "prohibited", "family", "nonce")


def metadata_of(issuer):
    document = fetch_json(issuer + "/.well-known/uma2-configuration")
    assert document["issuer"] == issuer
    return document


@dataclass
class Challenge:
    """A 401 of an enforcement point, read from its header; `body` is the same object as plain JSON."""

    realm: str
    as_uri: str
    ticket: str
    resource_metadata: str
    scope: str
    remediation: dict
    body: dict

    @classmethod
    def of(cls, response):
        assert response.status == 401, response
        found = [params for value in response.all("www-authenticate") for scheme, params in challenges(value)
                 if scheme == "UMA"]
        assert len(found) == 1, response.headers
        params = dict(found[0])
        assert params.pop("error") == "insufficient_authorization"
        remediation = json.loads(unb64(params.pop("authorization_remediation")))
        return cls(remediation=remediation, body=response.json(), **params)


class Agent:
    """A requesting agent: one key, no memory of any resource."""

    def __init__(self, key=None):
        self.key = key or Key()
        self.handle = "jkt:" + self.key.thumbprint

    def call(self, resource, tool, arguments=None, token=None, **changes):
        """tools/call, signed when there is a token. `changes` are what a hostile test alters; see `request`."""
        params = {"name": tool, "arguments": arguments or {}} | changes.pop("params", {})
        return self.request(resource, "tools/call", params, token, name=tool, **changes)

    def request(self, resource, method, params=None, token=None, *, name=None, version="2026-07-28", scheme="PoP",
                verb="POST", body=None, headers=None, without=(), extra=(), signed=None, replayable=None, **signing):
        """`body` replaces the bytes, `headers` the MCP headers; `without` drops header names, `extra` appends lines
        after signing; `signed` False leaves the signature out, a key as `key` signs with that one. What was sent is
        appended to the list `replayable`."""
        body = mcp_body(method, params, version=version) if body is None else body
        lines = mcp_headers(method, name, version=version) if headers is None else list(headers)
        if token is not None:
            lines.append(("Authorization", f"{scheme} {token}"))
        if (token is not None) if signed is None else signed:
            key = signing.pop("key", self.key)
            lines += sign(key, verb, resource, lines, body, **signing)
        dropped = {header.lower() for header in without}
        lines = [line for line in lines if line[0].lower() not in dropped] + list(extra)
        if replayable is not None:
            replayable.append((verb, resource, lines, body))
        return send(verb, resource, lines, body)

    def corroborate(self, resource, challenge):
        """What a careful agent checks before it negotiates: the resource itself lists the authority it was sent to."""
        parts = urlsplit(resource)
        origin = f"{parts.scheme}://{parts.netloc}"
        assert challenge.resource_metadata == f"{origin}/.well-known/oauth-protected-resource{parts.path}"
        document = fetch_json(challenge.resource_metadata)
        assert document["resource"] == resource
        assert challenge.as_uri in document["authorization_servers"]
        _, signed = verify_jws(document["signed_metadata"], fetch_json(document["jwks_uri"]))
        assert signed["iss"] == resource
        assert all(signed[name] == document[name] for name in document if name != "signed_metadata")
        return document

    def negotiate(self, resource, tool, arguments=None):
        """Up to the owner's terms."""
        challenge = Challenge.of(self.call(resource, tool, arguments))
        negotiation = Negotiation(self, challenge.as_uri, challenge.ticket, {"tool": tool, "params": arguments or {}})
        negotiation.ask()
        return negotiation

    def obtain(self, resource, tool, arguments=None, owner=None):
        """The whole dance to a grant; `owner` approves when she is asked."""
        negotiation = self.negotiate(resource, tool, arguments)
        response = negotiation.commit()
        if response.status != 200:
            negotiation.pending(response)
            owner.decide(negotiation.family, "approved")
            response = negotiation.poll()
        return negotiation.grant(response)


class Negotiation:
    """One ticket chain. `tickets` keeps every ticket in order, the last one live until it is presented."""

    def __init__(self, agent, issuer, ticket, operation):
        self.agent, self.issuer, self.operation = agent, issuer, operation
        self.metadata = metadata_of(issuer)
        self.tickets, self.template, self.agreement, self.format = [ticket], None, None, None

    @property
    def family(self):
        return self.template["family"]

    @property
    def ticket(self):
        return self.tickets[-1]

    def present(self, *, ticket=None, signer=None, **form):
        """One presentation; a ticket that comes back is remembered. `signer` signs the request itself."""
        url = self.metadata["token_endpoint"]
        body = urlencode({"grant_type": UMA_TICKET, "ticket": ticket or self.ticket} | form).encode()
        headers = [FORM]
        if signer:
            headers += sign(signer, "POST", url, headers, body)
        response = send("POST", url, headers, body)
        answer = response.json() if response.status in (200, 403) else {}
        if "ticket" in answer:
            self.tickets.append(answer["ticket"])
        return response

    def ask(self):
        """First presentation: 403 need_info with the terms."""
        response = self.present()
        answer = response.json()
        assert (response.status, answer["error"]) == (403, "need_info"), response
        (claim,) = answer["required_claims"]
        self.template = claim["terms_template"]
        formats = claim["claim_token_format"]
        self.format = next(name for name in formats if name in AGREEMENT_FORMATS)
        return response

    def claims(self):
        """The agreement an honest agent writes."""
        claims = {name: self.template[name] for name in ECHOED}
        claims |= {"iss": self.agent.handle, "aud": self.issuer, "iat": int(time.time())}
        if self.template.get("per_operation"):
            claims["operation"] = self.operation
        return claims

    def sign_agreement(self, claims, *, header=None, key=None):
        key = key or self.agent.key
        if header is None:
            header = {"typ": "myterms-agreement-v1+jws", "alg": "EdDSA", "jwk": self.agent.key.jwk}
        self.agreement = compact_jws(key, header, claims)
        return self.agreement

    def commit(self, claims=None, *, claim_token=None, format=None, **signing):
        """Sign the terms and present them; the arguments replace what an honest agent would send."""
        if claim_token is None:
            claim_token = b64(self.sign_agreement(self.claims() if claims is None else claims, **signing).encode())
        return self.present(claim_token=claim_token, claim_token_format=format or self.format)

    def pending(self, response):
        answer = response.json()
        assert (response.status, answer["error"]) == (403, "request_submitted"), response
        assert answer["ticket"] == self.ticket
        return answer

    def poll(self, timeout=15, **form):
        """Poll until the answer is final."""
        deadline = time.monotonic() + timeout
        while True:
            response = self.present(**form)
            if response.status != 403 or response.json()["error"] != "request_submitted":
                return response
            assert time.monotonic() < deadline, "still waiting for the owner"
            time.sleep(response.json().get("interval", 1))

    def grant(self, response):
        assert response.status == 200, response
        return Grant(self, response)


class Grant:
    """A token response, with what it claims."""

    def __init__(self, negotiation, response: Response):
        self.negotiation, self.response, self.answer = negotiation, response, response.json()
        self.token, self.receipt = self.answer["access_token"], self.answer["receipt"]
        self.header, self.claims = open_jws(self.token)
        self.family = negotiation.family
        self.agreement_digest = s256(negotiation.agreement)


class Owner:
    """Her terminal: a device key and the owner endpoint."""

    def __init__(self, issuer, key):
        self.endpoint, self.key = metadata_of(issuer)["owner_endpoint"], key

    def request(self, verb, path, value=None, *, key=None, extra=(), replayable=None, **signing):
        url = path if path.startswith("http") else self.endpoint + path
        body = None if value is None else json.dumps(value).encode()
        headers = [JSON] if body is not None else []
        headers += sign(key or self.key, verb, url, headers, body, **signing)
        if replayable is not None:
            replayable.append((verb, url, headers, body))
        return send(verb, url, [*headers, *extra], body)

    def read(self, path):
        response = self.request("GET", path)
        assert response.status == 200, (path, response)
        return response.json()

    def pending(self):
        return {item["family"]: item for item in self.read("/pending")}

    def answer(self, family, decision, **signing):
        return self.request("POST", f"/pending/{quote(family, safe='')}/decision", {"decision": decision}, **signing)

    def decide(self, family, decision):
        response = self.answer(family, decision)
        assert response.status in (200, 204), response

    def connections(self):
        return {row["handle"]: row for row in self.read("/connections")}

    def revoke(self, handle):
        response = self.request("POST", "/connections/revoke", {"handle": handle})
        assert response.status == 200, response
        return response.json()

    def ledger(self, handle=None):
        """Every row, following the pages."""
        rows, path = [], "/ledger" + (f"?handle={quote(handle, safe='')}" if handle else "")
        while path:
            response = self.request("GET", path)
            assert response.status == 200, response
            rows += response.json()
            following = [link for link in response.all("link") if 'rel="next"' in link or "rel=next" in link]
            path = following[0].partition(">")[0].lstrip("<") if following else None
            if path and path.startswith("/"):
                parts = urlsplit(self.endpoint)
                path = f"{parts.scheme}://{parts.netloc}{path}"
        return rows

    def kinds(self, family):
        return [row["kind"] for row in self.ledger() if row["family"] == family]


class ResourceServer:
    """The enforcement point's side of the protection API, with the key it publishes."""

    def __init__(self, issuer, client_id, key):
        self.metadata, self.client_id, self.key = metadata_of(issuer), client_id, key
        self._pat = None

    def ask_token(self, *, key=None, scope="uma_protection", signed=True, extra=(), form=None, replayable=None,
                  **signing):
        url = self.metadata["token_endpoint"]
        fields = {"grant_type": "client_credentials", "scope": scope, "client_id": self.client_id} | (form or {})
        body, headers = urlencode(fields).encode(), [FORM, *extra]
        if signed:
            headers += sign(key or self.key, "POST", url, headers, body, **signing)
        if replayable is not None:
            replayable.append(("POST", url, headers, body))
        return send("POST", url, headers, body)

    @property
    def pat(self):
        if self._pat is None:
            response = self.ask_token()
            assert response.status == 200, response
            self._pat = response.json()["access_token"]
        return self._pat

    def bearer(self, pat):
        token = self.pat if pat is None else pat
        return [("Authorization", f"Bearer {token}")] if token else []

    def perm(self, resource_id, scopes, pat=None):
        body = json.dumps({"resource_id": resource_id, "resource_scopes": scopes}).encode()
        return send("POST", self.metadata["permission_endpoint"], [JSON, *self.bearer(pat)], body)

    def introspect(self, token, pat=None):
        return self._form("introspection_endpoint", token, pat)

    def consume(self, token, pat=None, attempt=None):
        return self._form("consume_endpoint", token, pat, {"attempt": attempt} if attempt else {})

    def report(self, body, pat=None):
        endpoint = self.metadata["sayso_audit_endpoint"]
        return send("POST", endpoint, [JSON, *self.bearer(pat)], json.dumps(body).encode())

    def state(self, token):
        """True, or the reason the token is not active."""
        answer = self.introspect(token).json()
        return True if answer["active"] else answer["error"]

    def _form(self, endpoint, token, pat, more=()):
        body = urlencode({"token": token} | dict(more)).encode()
        return send("POST", self.metadata[endpoint], [FORM, *self.bearer(pat)], body)
