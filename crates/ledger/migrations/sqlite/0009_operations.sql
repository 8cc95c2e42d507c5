-- Who is told of what, as it is configured now.
CREATE TABLE webhook_events (
    event   TEXT NOT NULL,
    target  TEXT NOT NULL,
    PRIMARY KEY (event, target)
) STRICT, WITHOUT ROWID;

-- What others are told, written with what it tells of. Of the rows of one target and document only the first is due.
CREATE TABLE outbox (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    target      TEXT NOT NULL,
    id          TEXT NOT NULL,
    document    TEXT NOT NULL,
    event       TEXT NOT NULL,
    payload     TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    -- Since when it is tried.
    since_ms    INTEGER NOT NULL,
    next_ms     INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('due', 'behind', 'delivered', 'dead')),
    attempts    INTEGER NOT NULL DEFAULT 0,
    last_error  TEXT,
    ended_ms    INTEGER,
    UNIQUE (target, id)
) STRICT;

CREATE UNIQUE INDEX outbox_one_due ON outbox (target, document) WHERE state = 'due';
CREATE INDEX outbox_due ON outbox (target, next_ms) WHERE state = 'due';
CREATE INDEX outbox_waiting ON outbox (target, document, number) WHERE state IN ('due', 'behind');
CREATE INDEX outbox_delivered ON outbox (target, ended_ms) WHERE state = 'delivered';
CREATE INDEX outbox_dead ON outbox (target, number) WHERE state = 'dead';

-- Kept copies that wait for a person.
CREATE INDEX unsettled_copies ON kept (kind) WHERE settled_ms IS NULL;
