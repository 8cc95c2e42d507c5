-- Summary logs, what their workbooks hold, and the records they became.

-- A scope is an organisation and a registration. Its commits are numbered 1, 2, …; readers look up to the head.
CREATE TABLE record_scopes (
    number        INTEGER PRIMARY KEY,
    organisation  TEXT NOT NULL,
    registration  TEXT NOT NULL,
    head          INTEGER NOT NULL DEFAULT 0,
    UNIQUE (organisation, registration)
) STRICT;

CREATE TABLE summary_logs (
    number            INTEGER PRIMARY KEY AUTOINCREMENT,
    id                TEXT NOT NULL UNIQUE,
    scope             INTEGER NOT NULL REFERENCES record_scopes (number),
    -- The id an outside uploader gave.
    upload            TEXT,
    accreditation     TEXT,
    template          TEXT NOT NULL,
    template_version  TEXT NOT NULL,
    policy            TEXT NOT NULL CHECK (policy IN ('one-active', 'parallel')),
    state             TEXT NOT NULL CHECK (state IN ('preprocessing', 'validating', 'validated', 'invalid', 'submitting',
                                                     'submitted', 'superseded', 'validation_failed')),
    reason            TEXT,
    superseded_by     INTEGER REFERENCES summary_logs (number),
    -- A workbook, perhaps the content of a document; or the commit that is undone.
    file_name         TEXT,
    file_type         TEXT,
    flags             TEXT,
    digest            BLOB REFERENCES blobs (digest),
    document          TEXT,
    version           INTEGER,
    checkpoint        INTEGER,
    undoes            INTEGER,
    author_id         TEXT NOT NULL,
    author_name       TEXT NOT NULL,
    uploaded_ms       INTEGER NOT NULL,
    -- Only the run with this number may work on it; it grows whenever somebody takes the log up. The rest saves work.
    run               INTEGER NOT NULL DEFAULT 0,
    attempts          INTEGER NOT NULL DEFAULT 0,
    worked_until_ms   INTEGER,
    -- Rows of the workbook, and rows in staged_rows: those and the ends of records.
    rows              INTEGER NOT NULL DEFAULT 0,
    staged            INTEGER NOT NULL DEFAULT 0,
    -- The head that all staged rows are compared with; -1 if they are compared with several.
    compared          INTEGER,
    -- All that were found; problems has those that are kept.
    fatal             INTEGER NOT NULL DEFAULT 0,
    error             INTEGER NOT NULL DEFAULT 0,
    warning           INTEGER NOT NULL DEFAULT 0,
    facts             TEXT,
    -- The preview: against which head, and what it promises.
    validated_ms      INTEGER,
    basis             INTEGER,
    created           INTEGER,
    updated           INTEGER,
    unchanged         INTEGER,
    removed           INTEGER,
    submitter_id      TEXT,
    submitter_name    TEXT,
    -- Versions written by the submission.
    applied           INTEGER NOT NULL DEFAULT 0,
    CHECK (state NOT IN ('validated', 'submitting', 'submitted') OR (basis IS NOT NULL AND created IS NOT NULL AND
           updated IS NOT NULL AND unchanged IS NOT NULL AND removed IS NOT NULL AND validated_ms IS NOT NULL)),
    CHECK (applied = 0 OR state IN ('submitting', 'submitted'))
) STRICT;

CREATE UNIQUE INDEX one_active_log ON summary_logs (scope)
    WHERE policy = 'one-active' AND state IN ('preprocessing', 'validating', 'validated', 'submitting');
CREATE UNIQUE INDEX one_submission ON summary_logs (scope) WHERE state = 'submitting';
CREATE UNIQUE INDEX logs_by_upload ON summary_logs (scope, upload) WHERE upload IS NOT NULL;
CREATE INDEX logs_by_scope ON summary_logs (scope, number);
CREATE INDEX logs_by_document ON summary_logs (document, number) WHERE document IS NOT NULL;
CREATE INDEX logs_by_digest ON summary_logs (digest) WHERE digest IS NOT NULL;
CREATE INDEX logs_owed ON summary_logs (worked_until_ms, number) WHERE state IN ('preprocessing', 'validating', 'submitting');
CREATE INDEX logs_with_staging ON summary_logs (number) WHERE staged > 0;

CREATE TRIGGER summary_logs_are_kept BEFORE DELETE ON summary_logs
BEGIN SELECT RAISE(ABORT, 'summary logs are kept for ever'); END;
CREATE TRIGGER summary_logs_begin_at_the_beginning BEFORE INSERT ON summary_logs WHEN NEW.state <> 'preprocessing'
BEGIN SELECT RAISE(ABORT, 'a summary log begins as preprocessing'); END;
-- The table of transitions, as in model::submissions; a test holds the two against each other.
CREATE TRIGGER summary_logs_go_their_way BEFORE UPDATE OF state ON summary_logs
WHEN NEW.state <> OLD.state AND OLD.state || ' -> ' || NEW.state NOT IN (
    'preprocessing -> validating', 'preprocessing -> invalid', 'preprocessing -> superseded', 'preprocessing -> validation_failed',
    'validating -> validated', 'validating -> invalid', 'validating -> superseded', 'validating -> validation_failed',
    'validated -> validating', 'validated -> submitting', 'validated -> superseded', 'submitting -> validated', 'submitting -> submitted')
BEGIN SELECT RAISE(ABORT, 'a summary log does not go this way'); END;
CREATE TRIGGER runs_only_grow BEFORE UPDATE OF run ON summary_logs WHEN NEW.run < OLD.run
BEGIN SELECT RAISE(ABORT, 'runs only grow'); END;

-- What a row says, stored once when it is staged. Versions name it.
CREATE TABLE row_contents (
    number     INTEGER PRIMARY KEY,
    -- Of the content as it was staged, also if values were erased since.
    hash       BLOB NOT NULL CHECK (length(hash) = 32),
    -- Canonical JSON: texts by column.
    cells      TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    reason     TEXT,
    measure    TEXT,
    erased_ms  INTEGER
) STRICT;

CREATE TRIGGER contents_change_only_by_erasing BEFORE UPDATE ON row_contents
WHEN NEW.number <> OLD.number OR NEW.hash <> OLD.hash OR NEW.outcome <> OLD.outcome OR NEW.reason IS NOT OLD.reason
  OR NEW.measure IS NOT OLD.measure OR NEW.erased_ms IS NULL
BEGIN SELECT RAISE(ABORT, 'the content of a row changes only by erasing'); END;

-- No content: the record ends. Nothing refers to contents by a foreign key, because each removal would have to search for it;
-- `verify` looks.
CREATE TABLE staged_rows (
    log        INTEGER NOT NULL REFERENCES summary_logs (number),
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    content    INTEGER,
    change     TEXT NOT NULL CHECK (change IN ('created', 'updated', 'unchanged', 'removed')),
    sheet      TEXT NOT NULL,
    sheet_row  INTEGER NOT NULL,
    PRIMARY KEY (log, kind, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE problems (
    log       INTEGER NOT NULL REFERENCES summary_logs (number),
    -- 0 fatal, 1 error, 2 warning: the worst first.
    severity  INTEGER NOT NULL CHECK (severity IN (0, 1, 2)),
    number    INTEGER NOT NULL,
    code      TEXT NOT NULL,
    level     INTEGER NOT NULL,
    sheet     TEXT,
    cell      TEXT,
    header    TEXT,
    row_id    TEXT,
    value     TEXT,
    sentence  TEXT NOT NULL,
    PRIMARY KEY (log, severity, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE problem_counts (
    log       INTEGER NOT NULL REFERENCES summary_logs (number),
    severity  INTEGER NOT NULL,
    code      TEXT NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (log, severity, code)
) STRICT, WITHOUT ROWID;

-- One commit of a scope for each submission. A log has one at most.
CREATE TABLE record_commits (
    scope           INTEGER NOT NULL REFERENCES record_scopes (number),
    sequence        INTEGER NOT NULL,
    log             INTEGER NOT NULL UNIQUE REFERENCES summary_logs (number),
    committed_ms    INTEGER NOT NULL,
    audit_sequence  INTEGER NOT NULL,
    PRIMARY KEY (scope, sequence)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER commits_stay BEFORE UPDATE ON record_commits
BEGIN SELECT RAISE(ABORT, 'a commit stays as it is'); END;
CREATE TRIGGER commits_are_kept BEFORE DELETE ON record_commits
BEGIN SELECT RAISE(ABORT, 'commits are kept for ever'); END;
CREATE TRIGGER heads_follow_commits BEFORE UPDATE OF head ON record_scopes
WHEN NEW.head <> OLD.head + 1
  OR NOT EXISTS (SELECT 1 FROM record_commits c WHERE c.scope = NEW.number AND c.sequence = NEW.head)
BEGIN SELECT RAISE(ABORT, 'the head of a scope moves from commit to commit'); END;

-- A record is what has the same kind and key in a scope. Above the head is what a submission is writing; nobody sees it.
CREATE TABLE record_versions (
    scope      INTEGER NOT NULL REFERENCES record_scopes (number),
    kind       TEXT NOT NULL,
    key        TEXT NOT NULL,
    sequence   INTEGER NOT NULL,
    log        INTEGER NOT NULL REFERENCES summary_logs (number),
    content    INTEGER,
    change     TEXT NOT NULL CHECK (change IN ('created', 'updated', 'removed')),
    sheet      TEXT NOT NULL,
    sheet_row  INTEGER NOT NULL,
    PRIMARY KEY (scope, kind, key, sequence),
    CHECK ((content IS NULL) = (change = 'removed'))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER versions_are_written_above_the_head BEFORE INSERT ON record_versions
WHEN NOT EXISTS (SELECT 1 FROM summary_logs l JOIN record_scopes s ON s.number = l.scope
                 WHERE l.number = NEW.log AND l.state = 'submitting' AND s.number = NEW.scope AND NEW.sequence = s.head + 1)
BEGIN SELECT RAISE(ABORT, 'versions are written by a submission, above the head'); END;
CREATE TRIGGER versions_are_immutable BEFORE UPDATE ON record_versions
BEGIN SELECT RAISE(ABORT, 'versions of records are immutable'); END;
CREATE TRIGGER committed_versions_are_kept BEFORE DELETE ON record_versions
WHEN OLD.sequence <= (SELECT head FROM record_scopes WHERE number = OLD.scope)
BEGIN SELECT RAISE(ABORT, 'committed versions are kept for ever'); END;
