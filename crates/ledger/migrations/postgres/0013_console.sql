-- Pages stay quick however many documents there are: lists are read in their order from an index that has all that is looked at.

-- The length of the head, beside it: to sort by. A trigger keeps it, so that older instances go on working.
ALTER TABLE documents ADD COLUMN head_bytes BIGINT NOT NULL DEFAULT 0;
UPDATE documents SET head_bytes = (SELECT size_bytes FROM blobs WHERE digest = head_digest);
CREATE FUNCTION measure_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.head_bytes := (SELECT size_bytes FROM blobs WHERE digest = NEW.head_digest);
    RETURN NEW;
END $$;
CREATE TRIGGER heads_have_a_length BEFORE INSERT OR UPDATE OF head_digest ON documents
FOR EACH ROW EXECUTE FUNCTION measure_head();

CREATE INDEX documents_by_name ON documents (company, lower(name), id, project, name, deleted_ms, purged_ms)
    WHERE deleted_ms IS NULL AND purged_ms IS NULL;
CREATE INDEX documents_by_change ON documents (company, head_moved_ms, id, project, name, deleted_ms, purged_ms)
    WHERE deleted_ms IS NULL AND purged_ms IS NULL;
CREATE INDEX documents_by_size ON documents (company, head_bytes, id, project, name, deleted_ms, purged_ms)
    WHERE deleted_ms IS NULL AND purged_ms IS NULL;

-- Counted for operators every few seconds.
CREATE INDEX contents_that_are_there ON contents ((checkpoint > 0)) WHERE pruned_ms IS NULL;
CREATE INDEX kept_that_are_there ON kept (kind) WHERE pruned_ms IS NULL;
-- What waits for somebody, the newest first.
CREATE INDEX kept_that_wait ON kept (number) WHERE settled_ms IS NULL AND pruned_ms IS NULL;
