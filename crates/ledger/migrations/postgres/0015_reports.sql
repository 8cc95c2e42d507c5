-- What instances tell each other of themselves, for people who look now. Not logged: nothing rests on it.
CREATE UNLOGGED TABLE reports (
    instance TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    told_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (instance, subject)
);
