-- Acts say from where they came and what came of them; the heads of chains are anchored in a chain of their company; a blob
-- remembers when it was last read back.
DROP TRIGGER audit_is_append_only_update;
ALTER TABLE audit ADD COLUMN came_from TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
-- For finding entries; the chain and its anchors do not depend on it.
ALTER TABLE audit ADD COLUMN company TEXT NOT NULL DEFAULT '';
UPDATE audit SET company = coalesce((SELECT d.company FROM documents d WHERE d.id = audit.chain), '');
CREATE TRIGGER audit_is_append_only_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;

-- Whoever and whatever is asked for is told by the index alone.
CREATE INDEX audit_by_time ON audit (company, at_ms, chain, sequence, actor, action);
-- The entry that a version came with: its receipt.
CREATE INDEX audit_by_label ON audit (chain, json_extract(details, '$.label')) WHERE json_extract(details, '$.label') IS NOT NULL;

-- The end of the company's own chain, and when it last anchored all there was.
ALTER TABLE companies ADD COLUMN audit_sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE companies ADD COLUMN audit_hash BLOB NOT NULL
    DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000' CHECK (length(audit_hash) = 32);
ALTER TABLE companies ADD COLUMN anchored_ms INTEGER NOT NULL DEFAULT 0;
-- How much of a document's chain its company has anchored.
ALTER TABLE documents ADD COLUMN anchored_sequence INTEGER NOT NULL DEFAULT 0;
CREATE INDEX documents_unanchored ON documents (company, id) WHERE audit_sequence > anchored_sequence;

ALTER TABLE blobs ADD COLUMN read_back_ms INTEGER;
