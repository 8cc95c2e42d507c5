-- The history as editors show it; names that change; mentions; and retention: which contents were let go, which documents were
-- purged, and the lives of blobs.

-- The server's own record of who changed what, for the highlights in an editor: a blob beside the content.
ALTER TABLE contents ADD COLUMN changes_digest BLOB REFERENCES blobs (digest);
ALTER TABLE contents ADD COLUMN changes_bytes INTEGER;
-- When the Document Server was last given a link to it; nothing is let go while a link may be used.
ALTER TABLE contents ADD COLUMN handed_out_ms INTEGER;
-- Let go by the retention policy: the row stays, its bytes may go.
ALTER TABLE contents ADD COLUMN pruned_ms INTEGER;
CREATE INDEX contents_by_changes ON contents (changes_digest) WHERE changes_digest IS NOT NULL;
-- The names of people a company knows.
CREATE INDEX contents_by_author ON contents (author_id, document, author_name);
CREATE TRIGGER pruned_contents_stay_pruned BEFORE UPDATE OF pruned_ms ON contents WHEN OLD.pruned_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a content that was let go does not come back'); END;

ALTER TABLE kept ADD COLUMN pruned_ms INTEGER;

-- The name the published tree still shows it under, if it was renamed since.
ALTER TABLE documents ADD COLUMN shown_name TEXT;
-- Contents or the document itself were let go, and backups in the published tree are not looked through yet.
ALTER TABLE documents ADD COLUMN owes_pruning_ms INTEGER;
CREATE INDEX documents_owing_pruning ON documents (owes_pruning_ms) WHERE owes_pruning_ms IS NOT NULL;
-- A purged document is gone for everybody; its row keeps its id, its keys and its audit chain.
ALTER TABLE documents ADD COLUMN purged_ms INTEGER;
CREATE TRIGGER purged_documents_stay_purged BEFORE UPDATE OF purged_ms, deleted_ms ON documents WHEN OLD.purged_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a purged document does not come back'); END;
CREATE TRIGGER purged_documents_are_discounted AFTER UPDATE OF purged_ms ON documents
WHEN NEW.purged_ms IS NOT NULL AND OLD.purged_ms IS NULL
BEGIN
    UPDATE companies SET documents = documents - 1,
        head_bytes = head_bytes - (SELECT size_bytes FROM blobs WHERE digest = NEW.head_digest) WHERE id = NEW.company;
END;

-- `deleting` and a time here: the bytes are gone. They may come again; then the blob has another life.
ALTER TABLE blobs ADD COLUMN removed_ms INTEGER;
ALTER TABLE blobs ADD COLUMN removals INTEGER NOT NULL DEFAULT 0;
-- When the last row that needed it was let go.
ALTER TABLE blobs ADD COLUMN unneeded_ms INTEGER;
CREATE INDEX blobs_unneeded ON blobs (unneeded_ms) WHERE unneeded_ms IS NOT NULL;
CREATE INDEX blobs_going ON blobs (digest) WHERE state = 'deleting' AND removed_ms IS NULL;

CREATE INDEX forms_by_digest ON forms (digest);

-- People were mentioned in a comment: whoever tells them reads this.
CREATE TABLE mentions (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    document     TEXT NOT NULL REFERENCES documents (id),
    author_id    TEXT NOT NULL,
    author_name  TEXT NOT NULL,
    -- A JSON list of addresses.
    emails       TEXT NOT NULL,
    message      TEXT NOT NULL,
    -- JSON, as the editor gave it: where in the document; NULL if it said nothing.
    action_link  TEXT,
    at_ms        INTEGER NOT NULL
) STRICT;
CREATE INDEX mentions_by_document ON mentions (document, number);
