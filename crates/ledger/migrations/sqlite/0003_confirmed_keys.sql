-- When the server was heard to hold nothing under a retired key. Keys that retired before this was asked are taken as confirmed.
ALTER TABLE keys ADD COLUMN confirmed_ms INTEGER;
UPDATE keys SET confirmed_ms = coalesce(retired_ms, issued_ms) WHERE state = 'retired';
CREATE INDEX unconfirmed_keys ON keys (document) WHERE state = 'retired' AND mode = 'edit' AND confirmed_ms IS NULL;
