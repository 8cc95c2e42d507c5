-- How much a company may keep and has; API tokens; the ends of audit chains that belong to no document and no company.

-- NULL means no limit.
ALTER TABLE companies ADD COLUMN documents_max INTEGER;
ALTER TABLE companies ADD COLUMN bytes_max INTEGER;
-- Counted along with every change, so that a limit is looked up and not summed up. `verify` sums up.
ALTER TABLE companies ADD COLUMN documents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE companies ADD COLUMN head_bytes INTEGER NOT NULL DEFAULT 0;

UPDATE companies SET (documents, head_bytes) =
    (SELECT count(*), coalesce(sum(b.size_bytes), 0) FROM documents d JOIN blobs b ON b.digest = d.head_digest
     WHERE d.company = companies.id);

CREATE TRIGGER documents_are_counted AFTER INSERT ON documents
BEGIN
    UPDATE companies SET documents = documents + 1,
        head_bytes = head_bytes + (SELECT size_bytes FROM blobs WHERE digest = NEW.head_digest) WHERE id = NEW.company;
END;
CREATE TRIGGER heads_are_counted AFTER UPDATE OF head_digest ON documents WHEN NEW.head_digest <> OLD.head_digest
BEGIN
    UPDATE companies SET head_bytes = head_bytes + (SELECT size_bytes FROM blobs WHERE digest = NEW.head_digest)
        - (SELECT size_bytes FROM blobs WHERE digest = OLD.head_digest) WHERE id = NEW.company;
END;
CREATE TRIGGER documents_are_discounted AFTER DELETE ON documents
BEGIN
    UPDATE companies SET documents = documents - 1,
        head_bytes = head_bytes - (SELECT size_bytes FROM blobs WHERE digest = OLD.head_digest) WHERE id = OLD.company;
END;

CREATE TABLE api_tokens (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The SHA-256 of the token, which nobody has but its bearer.
    hash           BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    name           TEXT NOT NULL,
    role           TEXT NOT NULL,
    -- A JSON list of ids, or "*".
    companies      TEXT NOT NULL,
    organisations  TEXT NOT NULL,
    created_by     TEXT NOT NULL,
    created_ms     INTEGER NOT NULL,
    expires_ms     INTEGER,
    last_used_ms   INTEGER,
    revoked_ms     INTEGER
) STRICT;

CREATE TRIGGER api_tokens_are_kept BEFORE DELETE ON api_tokens
BEGIN SELECT RAISE(ABORT, 'API tokens are kept for ever'); END;
CREATE TRIGGER revoked_tokens_stay_revoked BEFORE UPDATE OF revoked_ms ON api_tokens WHEN OLD.revoked_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked token stays revoked'); END;
CREATE TRIGGER api_tokens_never_open_more BEFORE UPDATE OF hash, role, companies, organisations, expires_ms ON api_tokens
BEGIN SELECT RAISE(ABORT, 'what a token opens never changes'); END;

-- Documents and companies have the ends of their chains in their rows; `saveguard:installation` has its end here.
CREATE TABLE chains (
    chain     TEXT PRIMARY KEY,
    sequence  INTEGER NOT NULL,
    hash      BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT, WITHOUT ROWID;
