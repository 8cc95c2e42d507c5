-- What one person did, and who did one kind of thing, is found without looking at what everybody else did.
-- Names come from outside and may be longer than an index takes.
CREATE INDEX audit_by_actor ON audit (company, left(actor, 100), at_ms, chain, sequence, action);
CREATE INDEX audit_by_action ON audit (company, action, at_ms, chain, sequence);

-- The bin is read without looking at all that is not in it.
CREATE INDEX documents_in_the_bin ON documents (company, lower(name), id, project, name, head_moved_ms, head_bytes, deleted_ms, purged_ms)
    WHERE deleted_ms IS NOT NULL AND purged_ms IS NULL;
