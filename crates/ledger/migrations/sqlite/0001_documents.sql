-- Companies, projects, documents and their contents; keys; the inbox; kept copies; the audit trail.
-- Times are milliseconds since 1970, UTC. Digests are 32 raw bytes.

CREATE TABLE companies (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    created_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE projects (
    company     TEXT NOT NULL REFERENCES companies (id),
    id          TEXT NOT NULL,
    name        TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    PRIMARY KEY (company, id)
) STRICT, WITHOUT ROWID;

-- A blob is named here before any other row names it, and is durable in the vault before that.
CREATE TABLE blobs (
    digest      BLOB PRIMARY KEY CHECK (length(digest) = 32),
    size_bytes  INTEGER NOT NULL,
    state       TEXT NOT NULL DEFAULT 'present' CHECK (state IN ('present', 'deleting')),
    named_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE documents (
    id                    TEXT PRIMARY KEY,
    company               TEXT NOT NULL,
    project               TEXT NOT NULL,
    name                  TEXT NOT NULL,
    created_ms            INTEGER NOT NULL,
    -- The head is the newest version or checkpoint.
    head_version          INTEGER NOT NULL,
    head_checkpoint       INTEGER NOT NULL,
    head_digest           BLOB NOT NULL REFERENCES blobs (digest),
    head_key              TEXT,
    head_moved_ms         INTEGER NOT NULL,
    last_version          INTEGER NOT NULL,
    key_counter           INTEGER NOT NULL DEFAULT 0,
    -- The published tree is a projection; these say how far it got.
    owes_since_ms         INTEGER,
    published_version     INTEGER,
    published_checkpoint  INTEGER,
    published_ms          INTEGER,
    -- The end of the document's audit chain.
    audit_sequence        INTEGER NOT NULL DEFAULT 0,
    audit_hash            BLOB NOT NULL DEFAULT (zeroblob(32)) CHECK (length(audit_hash) = 32),
    FOREIGN KEY (company, project) REFERENCES projects (company, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX documents_by_project ON documents (company, project, id);
CREATE INDEX documents_owing ON documents (owes_since_ms) WHERE owes_since_ms IS NOT NULL;

-- Versions (checkpoint = 0) and checkpoints made on top of them.
CREATE TABLE contents (
    document          TEXT NOT NULL REFERENCES documents (id),
    version           INTEGER NOT NULL,
    checkpoint        INTEGER NOT NULL,
    origin            TEXT NOT NULL,
    digest            BLOB NOT NULL REFERENCES blobs (digest),
    file_type         TEXT NOT NULL,
    flags             TEXT NOT NULL,
    author_id         TEXT NOT NULL,
    author_name       TEXT NOT NULL,
    committed_ms      INTEGER NOT NULL,
    saved_ms          INTEGER,
    session_start_ms  INTEGER,
    key               TEXT,
    inbox             INTEGER UNIQUE,
    is_filed_beside   INTEGER NOT NULL DEFAULT 0,
    history           TEXT,
    server_version    TEXT,
    PRIMARY KEY (document, version, checkpoint)
) STRICT, WITHOUT ROWID;

CREATE INDEX contents_by_key ON contents (key, digest) WHERE key IS NOT NULL;
CREATE INDEX contents_by_digest ON contents (digest);

CREATE TABLE kept (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    document     TEXT REFERENCES documents (id),
    kind         TEXT NOT NULL CHECK (kind IN ('conflict', 'quarantine', 'orphan')),
    reason       TEXT NOT NULL,
    digest       BLOB NOT NULL REFERENCES blobs (digest),
    file_type    TEXT NOT NULL,
    flags        TEXT NOT NULL,
    author_id    TEXT NOT NULL,
    author_name  TEXT NOT NULL,
    kept_ms      INTEGER NOT NULL,
    key          TEXT,
    inbox        INTEGER UNIQUE
) STRICT;

CREATE INDEX kept_by_document ON kept (document, number);
CREATE INDEX kept_by_key ON kept (key, digest) WHERE key IS NOT NULL;
CREATE INDEX kept_by_digest ON kept (digest);

-- Data of submitted forms: one each, never overwritten.
CREATE TABLE forms (
    inbox         INTEGER PRIMARY KEY,
    document      TEXT NOT NULL REFERENCES documents (id),
    digest        BLOB NOT NULL REFERENCES blobs (digest),
    committed_ms  INTEGER NOT NULL
) STRICT;

CREATE INDEX forms_by_document ON forms (document, inbox);

-- Every key ever issued, for ever.
CREATE TABLE keys (
    key                    TEXT PRIMARY KEY,
    document               TEXT NOT NULL REFERENCES documents (id),
    mode                   TEXT NOT NULL CHECK (mode IN ('edit', 'view')),
    state                  TEXT NOT NULL CHECK (state IN ('live', 'retired', 'adopted')),
    base_version           INTEGER,
    base_checkpoint        INTEGER,
    base_digest            BLOB REFERENCES blobs (digest),
    issued_ms              INTEGER NOT NULL,
    retired_ms             INTEGER,
    retired_why            TEXT,
    saves_received         INTEGER NOT NULL DEFAULT 0,
    last_received_final    INTEGER,
    -- The newest final save and the newest checkpoint: what the order guard compares with.
    final_inbox            INTEGER,
    final_saved_ms         INTEGER,
    final_digest           BLOB,
    final_start_ms         INTEGER,
    checkpoint_inbox       INTEGER,
    checkpoint_saved_ms    INTEGER,
    checkpoint_digest      BLOB,
    checkpoint_start_ms    INTEGER,
    first_save_ms          INTEGER,
    base_fetched_again_ms  INTEGER,
    -- The final save was answered 0, or the forgotten file collected.
    settled_ms             INTEGER,
    users                  TEXT NOT NULL DEFAULT '[]',
    last_seen_ms           INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_live_edit_key ON keys (document) WHERE state = 'live' AND mode = 'edit';
CREATE INDEX keys_by_document ON keys (document, issued_ms);

CREATE TABLE inbox (
    number            INTEGER PRIMARY KEY AUTOINCREMENT,
    key               TEXT NOT NULL,
    document          TEXT REFERENCES documents (id),
    status            INTEGER NOT NULL,
    url_path          TEXT,
    last_save_ms      INTEGER,
    callback          TEXT NOT NULL,
    received_ms       INTEGER NOT NULL,
    link_received_ms  INTEGER NOT NULL,
    deliveries        INTEGER NOT NULL DEFAULT 1,
    outcome           TEXT,
    answer            TEXT,
    version           INTEGER,
    checkpoint        INTEGER,
    kept              INTEGER,
    finished_ms       INTEGER,
    answered_ms       INTEGER
) STRICT;

CREATE INDEX inbox_by_identity ON inbox (key, status, url_path, last_save_ms, number);
CREATE INDEX inbox_open ON inbox (document) WHERE outcome IS NULL;

CREATE TABLE audit (
    chain     TEXT NOT NULL,
    sequence  INTEGER NOT NULL,
    at_ms     INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    details   TEXT NOT NULL,
    hash      BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (chain, sequence)
) STRICT, WITHOUT ROWID;

-- What was written is never changed or removed.
CREATE TRIGGER audit_is_append_only_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_is_append_only_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER contents_are_immutable BEFORE UPDATE OF document, version, checkpoint, digest, inbox, committed_ms ON contents
BEGIN SELECT RAISE(ABORT, 'contents are immutable'); END;
CREATE TRIGGER contents_are_kept BEFORE DELETE ON contents
BEGIN SELECT RAISE(ABORT, 'contents are kept for ever'); END;
CREATE TRIGGER keys_are_kept BEFORE DELETE ON keys
BEGIN SELECT RAISE(ABORT, 'keys are kept for ever'); END;
CREATE TRIGGER finished_callbacks_stay_finished BEFORE UPDATE OF outcome, answer ON inbox WHEN OLD.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a finished callback stays finished'); END;
