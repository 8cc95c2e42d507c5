-- Deleted documents stay, findable for those who may restore them; their saves are still taken.
ALTER TABLE documents ADD COLUMN deleted_ms BIGINT;
ALTER TABLE documents ADD COLUMN deleted_by TEXT COLLATE "C";
CREATE INDEX deleted_documents ON documents (deleted_ms) WHERE deleted_ms IS NOT NULL;
-- A person looked at a kept copy: it became a version, or is not needed.
ALTER TABLE kept ADD COLUMN settled_ms BIGINT;
ALTER TABLE kept ADD COLUMN settled_as TEXT COLLATE "C";
