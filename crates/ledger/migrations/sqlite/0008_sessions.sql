-- Sessions: who is or was under a key, and what the server said when it was asked.
CREATE TABLE session_people (
    key       TEXT NOT NULL REFERENCES keys (key),
    user      TEXT NOT NULL,
    -- As they were called when they opened; empty if only the server named them.
    name      TEXT NOT NULL DEFAULT '',
    since_ms  INTEGER,
    seen_ms   INTEGER,
    PRIMARY KEY (key, user)
) STRICT, WITHOUT ROWID;

-- When the first of them came in.
ALTER TABLE keys ADD COLUMN entered_ms INTEGER;
-- The server's answer about the session and when it was asked; empty once it is heard of again.
ALTER TABLE keys ADD COLUMN server_says TEXT;
ALTER TABLE keys ADD COLUMN looked_ms INTEGER;
UPDATE keys SET entered_ms = last_seen_ms WHERE mode = 'edit';
CREATE INDEX keys_with_people ON keys (key) WHERE users <> '[]';
