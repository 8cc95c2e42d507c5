-- What one person did, and who did one kind of thing, is found without looking at what everybody else did.
-- Names come from outside and may be longer than an index takes.
CREATE INDEX audit_by_actor ON audit (company, left(actor, 100), at_ms, chain, sequence, action);
CREATE INDEX audit_by_action ON audit (company, action, at_ms, chain, sequence);
