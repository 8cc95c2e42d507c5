-- Share links, their guests, and who has to be asked to leave.

CREATE TABLE shares (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The SHA-256 of the token, which nobody has but those who were given the link.
    hash          BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    document      TEXT NOT NULL REFERENCES documents (id),
    label         TEXT NOT NULL,
    allows        TEXT NOT NULL CHECK (allows IN ('view', 'comment', 'edit')),
    may_download  INTEGER NOT NULL CHECK (may_download IN (0, 1)),
    -- An Argon2 hash, or NULL if there is no password.
    password      TEXT,
    created_by    TEXT NOT NULL,
    created_ms    INTEGER NOT NULL,
    expires_ms    INTEGER,
    revoked_ms    INTEGER,
    uses          INTEGER NOT NULL DEFAULT 0,
    last_used_ms  INTEGER
) STRICT;

CREATE INDEX shares_by_document ON shares (document, number);

CREATE TRIGGER shares_are_kept BEFORE DELETE ON shares
BEGIN SELECT RAISE(ABORT, 'share links are kept for ever'); END;
CREATE TRIGGER revoked_shares_stay_revoked BEFORE UPDATE OF revoked_ms ON shares WHEN OLD.revoked_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked share link stays revoked'); END;
CREATE TRIGGER shares_never_open_more
BEFORE UPDATE OF hash, document, allows, may_download, password, expires_ms ON shares
BEGIN SELECT RAISE(ABORT, 'what a share link opens never changes'); END;

-- Each use of a link has a guest of its own.
CREATE TABLE guests (
    share      INTEGER NOT NULL REFERENCES shares (number),
    number     INTEGER NOT NULL,
    name       TEXT NOT NULL,
    opened_ms  INTEGER NOT NULL,
    PRIMARY KEY (share, number)
) STRICT, WITHOUT ROWID;

-- The editor configurations guests were given: under which key, and until when each of them opens anything.
CREATE TABLE guest_sessions (
    share      INTEGER NOT NULL,
    guest      INTEGER NOT NULL,
    key        TEXT NOT NULL,
    opened_ms  INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL,
    PRIMARY KEY (share, guest, key),
    FOREIGN KEY (share, guest) REFERENCES guests (share, number)
) STRICT, WITHOUT ROWID;

-- Guests of revoked links that may still be inside. A row goes when they were asked to leave after their configuration ended.
CREATE TABLE guest_drops (
    share       INTEGER NOT NULL,
    guest       INTEGER NOT NULL,
    key         TEXT NOT NULL,
    until_ms    INTEGER NOT NULL,
    dropped_ms  INTEGER,
    PRIMARY KEY (share, guest, key),
    FOREIGN KEY (share, guest, key) REFERENCES guest_sessions (share, guest, key)
) STRICT, WITHOUT ROWID;
