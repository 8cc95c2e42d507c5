-- Acts say from where they came and what came of them; the heads of chains are anchored in a chain of their company; a blob
-- remembers when it was last read back.
ALTER TABLE audit ADD COLUMN came_from TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN outcome TEXT COLLATE "C" NOT NULL DEFAULT '';
-- For finding entries; the chain and its anchors do not depend on it.
ALTER TABLE audit ADD COLUMN company TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX audit_by_time ON audit (company, at_ms, chain, sequence, action);
-- The entry that a version came with: its receipt. Not by JSON functions: they refuse texts with \u0000, which people may have sent.
CREATE INDEX audit_by_label ON audit (chain, substring(details FROM '"label":"([0-9.]+)"'))
    WHERE substring(details FROM '"label":"([0-9.]+)"') IS NOT NULL;

-- The end of the company's own chain, and when it last anchored all there was.
ALTER TABLE companies ADD COLUMN audit_sequence BIGINT NOT NULL DEFAULT 0;
ALTER TABLE companies ADD COLUMN audit_hash BYTEA NOT NULL
    DEFAULT '\x0000000000000000000000000000000000000000000000000000000000000000' CHECK (length(audit_hash) = 32);
ALTER TABLE companies ADD COLUMN anchored_ms BIGINT NOT NULL DEFAULT 0;
-- How much of a document's chain its company has anchored.
ALTER TABLE documents ADD COLUMN anchored_sequence BIGINT NOT NULL DEFAULT 0;
CREATE INDEX documents_unanchored ON documents (company, id) WHERE audit_sequence > anchored_sequence;

ALTER TABLE blobs ADD COLUMN read_back_ms BIGINT;
