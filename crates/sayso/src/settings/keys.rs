//! Every setting there is, with its default and what it means.

/// A key with its default and what it means.
pub(super) struct Key {
    /// Dotted name, as in the file's tables.
    pub(super) name: &'static str,
    /// The value when nothing sets it; empty means unset.
    pub(super) default: &'static str,
    /// What it means, with its unit.
    pub(super) help: &'static str,
}

/// Every key there is.
pub(super) const KEYS: &[Key] = &[
    Key { name: "data", default: ".sayso", help: "folder for the store, keys and the demo vault" },
    Key { name: "edition", default: "2026-09-11", help: "identifiers emitted: 2026-09-11 or 2026-09-15" },
    Key { name: "owner.name", default: "alice", help: "whose resources these are" },
    Key {
        name: "authority.listen",
        default: "127.0.0.1:8440",
        help: "address of the authority; port 0 picks one",
    },
    Key { name: "authority.public_url", default: "", help: "its issuer URL; the listen address when unset" },
    Key {
        name: "authority.portal_url",
        default: "",
        help: "where the owner's page is, an origin of its own; in `up` http://localhost and the port when unset",
    },
    Key { name: "store.url", default: "", help: "sqlite:PATH; sayso.db in the data folder when unset" },
    Key { name: "authority.require_signed_polls", default: "false", help: "whether polls must be signed" },
    Key {
        name: "authority.trusted_agent_issuers",
        default: "",
        help: "issuers whose credentials name agents, https origins, comma-separated; nobody's when unset",
    },
    Key {
        name: "authority.identity_providers",
        default: "",
        help: "who has to say for whom an agent acts, https URLs, comma-separated; nobody has to when unset",
    },
    Key {
        name: "authority.identity_claim",
        default: "sub",
        help: "the claim of theirs that names the person",
    },
    Key { name: "authority.interval", default: "1", help: "seconds between an agent's polls" },
    Key {
        name: "gateway.upstream",
        default: "",
        help: "URL of the MCP server behind; the demo vault when unset",
    },
    Key { name: "gateway.upstream_stdio", default: "", help: "or a command that speaks MCP over stdio" },
    Key {
        name: "gateway.upstream_env",
        default: "",
        help: "variables that command may see, comma-separated",
    },
    Key {
        name: "gateway.upstream_token_env",
        default: "",
        help: "variable whose value the server at the URL is shown as its bearer token",
    },
    Key {
        name: "gateway.upstream_host",
        default: "rewrite",
        help: "the host it is told: its own, or with `preserve` the public one",
    },
    Key {
        name: "gateway.survey_interval",
        default: "60",
        help: "seconds between listings of a server that does not say when its tools change",
    },
    Key {
        name: "gateway.enforce",
        default: "uma",
        help: "who is asked before a message is forwarded: uma, coaz, or both; [] asks nobody",
    },
    Key {
        name: "gateway.pdp",
        default: "",
        help: "the policy engine: `embedded`, or its https URL; the one of [pdp] when unset",
    },
    Key {
        name: "gateway.extra_defaults",
        default: "",
        help: "methods mapped beyond COAZ's own defaults, comma-separated",
    },
    Key {
        name: "gateway.filter_lists",
        default: "false",
        help: "whether lists are cut to what the policy lets their reader call",
    },
    Key {
        name: "gateway.subject_claim",
        default: "",
        help: "the token's claim that names the subject; sub when unset",
    },
    Key {
        name: "gateway.trust",
        default: "warn",
        help: "what becomes of a mapping whose subject cannot be verified: warn or strict",
    },
    Key {
        name: "gateway.binding",
        default: "2026-07",
        help: "the text of COAZ's binding for MCP that is followed: 2026-07, or 2026-09, where initialize is not mapped",
    },
    Key {
        name: "gateway.audit_arguments",
        default: "false",
        help: "whether the log has what a policy engine was asked, values and all",
    },
    Key {
        name: "gateway.denials",
        default: "error",
        help: "how a denied call of a tool is answered: error, or tool_result",
    },
    Key {
        name: "gateway.denial_text",
        default: "",
        help: "member of a policy engine's context whose text a denial repeats, as in reason_user.en; none when unset",
    },
    Key { name: "pdp.url", default: "", help: "the policy engine's https URL, as its metadata names it" },
    Key {
        name: "pdp.policies",
        default: "",
        help: "folder of Cedar policies, for the embedded policy engine",
    },
    Key { name: "pdp.ca", default: "", help: "file of the only roots to trust for the policy engine, PEM" },
    Key { name: "pdp.certificate", default: "", help: "file of a client certificate for it, PEM" },
    Key { name: "pdp.key", default: "", help: "file of that certificate's private key, PEM" },
    Key {
        name: "pdp.token_env",
        default: "",
        help: "variable that holds a bearer token for the policy engine",
    },
    Key { name: "pdp.token_file", default: "", help: "or a file that holds it" },
    Key { name: "pdp.timeout", default: "2000", help: "longest wait for a decision, in milliseconds" },
    Key {
        name: "oauth.issuers",
        default: "",
        help: "issuers whose access tokens are taken, comma-separated",
    },
    Key {
        name: "oauth.jwks_uri",
        default: "",
        help: "where the keys of the one issuer are; of several, ISSUER and URL with a space between, comma-separated",
    },
    Key {
        name: "oauth.audience",
        default: "",
        help: "what a token's audience must name, comma-separated; the resource's URL when unset",
    },
    Key {
        name: "oauth.algorithms",
        default: "",
        help: "signature algorithms taken, comma-separated; every one that is known when unset",
    },
    Key { name: "oauth.require_at_jwt", default: "false", help: "whether a token's typ must be at+jwt" },
    Key {
        name: "gateway.realm",
        default: "",
        help: "the server's name in ids; made from its own when unset",
    },
    Key {
        name: "gateway.listen",
        default: "127.0.0.1:8441",
        help: "address of the gateway; port 0 picks one",
    },
    Key { name: "gateway.public_url", default: "", help: "its URL; the listen address when unset" },
    Key {
        name: "gateway.ask_again",
        default: "false",
        help: "whether a gateway that an owner withdrew asks her once more",
    },
    Key { name: "gateway.body_limit", default: "4194304", help: "largest request body, in bytes" },
    Key {
        name: "metrics.listen",
        default: "127.0.0.1:0",
        help: "address of the metrics; port 0 picks one, which the ready line names",
    },
    Key {
        name: "ext_authz.listen",
        default: "127.0.0.1:8442",
        help: "address of checks over HTTP; port 0 picks one",
    },
    Key {
        name: "ext_authz.grpc.listen",
        default: "127.0.0.1:8443",
        help: "address of checks over gRPC; port 0 picks one",
    },
    Key {
        name: "ext_authz.public_url",
        default: "",
        help: "the origin agents dial at the gateway that asks",
    },
    Key {
        name: "ext_authz.hosts",
        default: "",
        help: "further hosts an unsigned request may name, comma-separated",
    },
    Key {
        name: "ext_authz.body_limit",
        default: "4194304",
        help: "bytes at which the gateway that asks cuts a body; one as long is refused",
    },
    Key {
        name: "ext_authz.partial_body_flag",
        default: "false",
        help: "whether the gateway that asks sets x-envoy-auth-partial-body itself, as Envoy does",
    },
    Key {
        name: "ext_authz.pass_headers",
        default: "",
        help: "headers the server may see beside MCP's, comma-separated",
    },
    Key { name: "gateway.allowed_origins", default: "", help: "browser origins served, comma-separated" },
];

/// Keys whose value is a list.
pub(super) const LISTS: [&str; 12] = [
    "authority.trusted_agent_issuers",
    "authority.identity_providers",
    "gateway.allowed_origins",
    "gateway.upstream_env",
    "gateway.enforce",
    "ext_authz.hosts",
    "ext_authz.pass_headers",
    "gateway.extra_defaults",
    "oauth.issuers",
    "oauth.jwks_uri",
    "oauth.audience",
    "oauth.algorithms",
];
