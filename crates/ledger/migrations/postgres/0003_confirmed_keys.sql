-- When the server was heard to hold nothing under a retired key.
ALTER TABLE keys ADD COLUMN confirmed_ms BIGINT;
CREATE INDEX unconfirmed_keys ON keys (document) WHERE state = 'retired' AND mode = 'edit' AND confirmed_ms IS NULL;
