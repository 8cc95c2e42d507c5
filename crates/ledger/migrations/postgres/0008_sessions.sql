-- Sessions: who is or was under a key, and what the server said when it was asked.
CREATE TABLE session_people (
    key       TEXT COLLATE "C" NOT NULL REFERENCES keys (key),
    "user"    TEXT COLLATE "C" NOT NULL,
    -- As they were called when they opened; empty if only the server named them.
    name      TEXT COLLATE "C" NOT NULL DEFAULT '',
    since_ms  BIGINT,
    seen_ms   BIGINT
);
CREATE UNIQUE INDEX each_person_once ON session_people (key, md5("user"));

-- When the first of them came in.
ALTER TABLE keys ADD COLUMN entered_ms BIGINT;
-- The server's answer about the session and when it was asked; empty once it is heard of again.
ALTER TABLE keys ADD COLUMN server_says TEXT COLLATE "C";
ALTER TABLE keys ADD COLUMN looked_ms BIGINT;
CREATE INDEX keys_with_people ON keys (key) WHERE users <> '[]';
