-- Version 1. Columns hold what is selected on, JSON columns (state, claims, entry, body) what is only read back.
-- Of tickets, tokens, protection tokens, links, sessions and signatures only the SHA-256 is here. `store_epoch` is the store's epoch
-- at writing: artifacts of another one are dead. `epoch` of a grant is its connection's.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES ('epoch', 1);

CREATE TABLE owners (
    name      TEXT PRIMARY KEY,
    namespace TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE owner_keys (
    thumbprint TEXT PRIMARY KEY,
    owner      TEXT NOT NULL REFERENCES owners (name),
    jwk        TEXT NOT NULL,
    label      TEXT NOT NULL,
    author     TEXT NOT NULL,
    enrolled   INTEGER NOT NULL
) STRICT;

CREATE TABLE resource_servers (
    owner         TEXT NOT NULL REFERENCES owners (name),
    client_id     TEXT NOT NULL,
    name          TEXT NOT NULL,
    resource_uri  TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('pending', 'active', 'revoked')),
    auth_method   TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    pinned_key    TEXT,
    author        TEXT,
    introduced_by TEXT NOT NULL CHECK (introduced_by IN ('setup', 'itself')),
    source        TEXT,
    withdrawals   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, client_id)
) STRICT;
CREATE INDEX resource_servers_waiting ON resource_servers (owner, source) WHERE status = 'pending';
CREATE INDEX resource_servers_by_client ON resource_servers (client_id);
CREATE INDEX resource_servers_by_key ON resource_servers (owner, pinned_key) WHERE pinned_key IS NOT NULL;

-- Set-up's word for a server that is about to introduce itself: one key at one resource, once, for a while (D-22).
CREATE TABLE pre_approvals (
    owner        TEXT NOT NULL REFERENCES owners (name),
    client_id    TEXT NOT NULL,
    resource_uri TEXT NOT NULL,
    key          TEXT NOT NULL,
    expires      INTEGER NOT NULL,
    PRIMARY KEY (owner, client_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE pats (
    digest      BLOB PRIMARY KEY,
    owner       TEXT NOT NULL,
    client_id   TEXT NOT NULL,
    expires     INTEGER NOT NULL,
    store_epoch INTEGER NOT NULL,
    FOREIGN KEY (owner, client_id) REFERENCES resource_servers (owner, client_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX pats_by_server ON pats (owner, client_id);
CREATE INDEX pats_by_expiry ON pats (expires);

CREATE TABLE resources (
    owner     TEXT NOT NULL,
    client_id TEXT NOT NULL,
    resource  TEXT NOT NULL,
    body      TEXT NOT NULL,
    pulled    INTEGER NOT NULL,
    PRIMARY KEY (owner, client_id, resource),
    FOREIGN KEY (owner, client_id) REFERENCES resource_servers (owner, client_id) ON UPDATE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE units (
    owner TEXT NOT NULL REFERENCES owners (name),
    unit  TEXT NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (owner, unit)
) STRICT;

-- Which unit governs what, and the registration as she last saw it. Outlives the registration, so that a tool that comes back is governed as before.
CREATE TABLE governed (
    owner     TEXT NOT NULL,
    client_id TEXT NOT NULL,
    resource  TEXT NOT NULL,
    unit      TEXT NOT NULL,
    seen      TEXT NOT NULL,
    PRIMARY KEY (owner, client_id, resource),
    FOREIGN KEY (owner, unit) REFERENCES units (owner, unit),
    FOREIGN KEY (owner, client_id) REFERENCES resource_servers (owner, client_id) ON UPDATE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX governed_by_unit ON governed (owner, unit);

CREATE TABLE terms (
    template_id TEXT PRIMARY KEY,
    owner       TEXT NOT NULL REFERENCES owners (name),
    unit        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    body        TEXT NOT NULL,
    author      TEXT NOT NULL,
    published   INTEGER NOT NULL,
    UNIQUE (owner, unit, version)
) STRICT;

CREATE TABLE negotiations (
    family         TEXT PRIMARY KEY,
    owner          TEXT NOT NULL REFERENCES owners (name),
    client_id      TEXT NOT NULL,
    resource       TEXT NOT NULL,
    scopes         TEXT NOT NULL,
    status         TEXT NOT NULL,
    state          TEXT NOT NULL,
    ticket         BLOB UNIQUE,
    ticket_expires INTEGER NOT NULL,
    due            INTEGER NOT NULL,
    handle         TEXT,
    likeness       TEXT,
    deadline       INTEGER,
    opened         INTEGER NOT NULL,
    keep_until     INTEGER NOT NULL,
    store_epoch    INTEGER NOT NULL
) STRICT;
CREATE INDEX negotiations_uncommitted_of_owner ON negotiations (owner, ticket_expires)
    WHERE status IN ('opened', 'awaiting_agreement');
CREATE INDEX negotiations_uncommitted ON negotiations (ticket_expires)
    WHERE status IN ('opened', 'awaiting_agreement');
CREATE INDEX negotiations_waiting ON negotiations (owner) WHERE status = 'awaiting_owner';
CREATE INDEX negotiations_of_agent ON negotiations (owner, handle) WHERE handle IS NOT NULL;
CREATE INDEX negotiations_by_end ON negotiations (keep_until);

CREATE TABLE connections (
    owner       TEXT NOT NULL REFERENCES owners (name),
    handle      TEXT NOT NULL,
    identity    TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
    epoch       INTEGER NOT NULL,
    first_seen  INTEGER NOT NULL,
    last_access INTEGER,
    revocations INTEGER NOT NULL,
    author      TEXT NOT NULL,
    PRIMARY KEY (owner, handle)
) STRICT;

CREATE TABLE grants (
    token_sha256    BLOB PRIMARY KEY,
    owner           TEXT NOT NULL,
    client_id       TEXT NOT NULL,
    family          TEXT NOT NULL UNIQUE,
    unit            TEXT NOT NULL,
    resource        TEXT NOT NULL,
    handle          TEXT NOT NULL,
    epoch           INTEGER NOT NULL,
    kid             TEXT NOT NULL,
    issued          INTEGER NOT NULL,
    exp             INTEGER NOT NULL,
    single_use      INTEGER NOT NULL CHECK (single_use IN (0, 1)),
    claims          TEXT NOT NULL,
    consumed_at     INTEGER,
    consume_attempt TEXT,
    killed_at       INTEGER,
    introspected_at INTEGER,
    likeness        TEXT NOT NULL,
    approved_at     INTEGER,
    bind            INTEGER NOT NULL CHECK (bind IN (0, 1)),
    store_epoch     INTEGER NOT NULL,
    FOREIGN KEY (owner, handle) REFERENCES connections (owner, handle)
) STRICT;
CREATE INDEX grants_of_agent ON grants (owner, handle, exp);
CREATE INDEX grants_of_unit ON grants (owner, unit, exp);
CREATE INDEX grants_of_resource ON grants (owner, client_id, resource, exp);
CREATE INDEX grants_by_end ON grants (exp);

-- Further rounds of a call its grant was spent on: offered when its tool asked, taken once.
CREATE TABLE rounds (
    token_sha256 BLOB NOT NULL REFERENCES grants (token_sha256) ON DELETE CASCADE,
    state        TEXT NOT NULL,
    offered_at   INTEGER NOT NULL,
    taken_at     INTEGER,
    attempt      TEXT,
    PRIMARY KEY (token_sha256, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
    family  TEXT PRIMARY KEY,
    owner   TEXT NOT NULL REFERENCES owners (name),
    handle  TEXT NOT NULL,
    issued  INTEGER NOT NULL,
    receipt TEXT NOT NULL
) STRICT;

CREATE TABLE ledger (
    owner  TEXT NOT NULL REFERENCES owners (name),
    seq    INTEGER NOT NULL,
    ts     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    family TEXT,
    handle TEXT,
    author TEXT NOT NULL,
    entry  TEXT NOT NULL,
    PRIMARY KEY (owner, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_of_agent ON ledger (owner, handle, seq) WHERE handle IS NOT NULL;

-- Her browser's way in: links that open a session once, and the sessions.
CREATE TABLE sign_in_links (
    digest      BLOB PRIMARY KEY,
    owner       TEXT NOT NULL REFERENCES owners (name),
    author      TEXT NOT NULL,
    expires     INTEGER NOT NULL,
    redeemed_at INTEGER,
    store_epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_by_end ON sign_in_links (expires);

CREATE TABLE sessions (
    digest      BLOB PRIMARY KEY,
    owner       TEXT NOT NULL REFERENCES owners (name),
    name        TEXT NOT NULL UNIQUE,
    link_by     TEXT NOT NULL,
    opened      INTEGER NOT NULL,
    seen        INTEGER NOT NULL,
    expires     INTEGER NOT NULL,
    store_epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_end ON sessions (expires);

CREATE TABLE replay (
    signature BLOB PRIMARY KEY,
    until     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX replay_by_end ON replay (until);

-- What must hold whoever writes. The insert triggers are there because REPLACE deletes without a delete trigger.

CREATE TRIGGER terms_are_frozen BEFORE UPDATE ON terms
BEGIN SELECT RAISE(ABORT, 'published terms are frozen'); END;
CREATE TRIGGER terms_stay BEFORE DELETE ON terms
BEGIN SELECT RAISE(ABORT, 'published terms stay'); END;
CREATE TRIGGER terms_are_new BEFORE INSERT ON terms
WHEN EXISTS (SELECT 1 FROM terms WHERE template_id = NEW.template_id
    OR (owner = NEW.owner AND unit = NEW.unit AND version = NEW.version))
BEGIN SELECT RAISE(ABORT, 'published terms are frozen'); END;

CREATE TRIGGER ledger_is_frozen BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the record is only appended to'); END;
CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the record is only appended to'); END;
CREATE TRIGGER ledger_has_no_gaps BEFORE INSERT ON ledger
WHEN NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM ledger WHERE owner = NEW.owner)
BEGIN SELECT RAISE(ABORT, 'the record has no gaps'); END;

CREATE TRIGGER grants_stay_spent BEFORE UPDATE OF consumed_at, consume_attempt ON grants
WHEN OLD.consumed_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a spent grant stays spent'); END;
CREATE TRIGGER sign_in_links_stay_spent BEFORE UPDATE OF redeemed_at ON sign_in_links
WHEN OLD.redeemed_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a spent link stays spent'); END;
CREATE TRIGGER grants_stay_dead BEFORE UPDATE OF killed_at ON grants
WHEN OLD.killed_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a dead grant stays dead'); END;
CREATE TRIGGER servers_stay_revoked BEFORE UPDATE OF status ON resource_servers
WHEN OLD.status = 'revoked' AND NEW.status = 'active'
BEGIN SELECT RAISE(ABORT, 'a revoked resource server is not made active'); END;
