-- What one person did, and who did one kind of thing, is found without looking at what everybody else did.
CREATE INDEX audit_by_actor ON audit (company, actor, at_ms, chain, sequence, action);
CREATE INDEX audit_by_action ON audit (company, action, at_ms, chain, sequence);
