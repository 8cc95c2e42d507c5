-- What instances tell each other of themselves, for people who look now. Not logged: nothing rests on it.
CREATE UNLOGGED TABLE reports (
    instance TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    told_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (instance, subject)
);

-- What came for one document is found without looking at what came for all others.
CREATE INDEX inbox_by_document ON inbox (document, number);
