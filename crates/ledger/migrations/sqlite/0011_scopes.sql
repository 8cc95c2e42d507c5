-- Who hands in what and by when, and the templates that workbooks are read by.

CREATE TABLE organisations (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    -- As others know it.
    number      TEXT,
    created_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Days are written YYYY-MM-DD, so that texts compare as days do.
CREATE TABLE registrations (
    organisation  TEXT NOT NULL REFERENCES organisations (id),
    id            TEXT NOT NULL,
    number        TEXT NOT NULL,
    title         TEXT NOT NULL,
    material      TEXT,
    -- A template in whatever version; NULL as long as nothing can be handed in.
    template      TEXT,
    from_day      TEXT CHECK (from_day = date(from_day)),
    until_day     TEXT CHECK (until_day = date(until_day)),
    created_ms    INTEGER NOT NULL,
    PRIMARY KEY (organisation, id),
    UNIQUE (organisation, number),
    CHECK (from_day <= until_day)
) STRICT, WITHOUT ROWID;
CREATE INDEX registrations_by_template ON registrations (template) WHERE template IS NOT NULL;

CREATE TABLE accreditations (
    organisation  TEXT NOT NULL,
    registration  TEXT NOT NULL,
    id            TEXT NOT NULL,
    number        TEXT NOT NULL,
    from_day      TEXT CHECK (from_day = date(from_day)),
    until_day     TEXT CHECK (until_day = date(until_day)),
    created_ms    INTEGER NOT NULL,
    PRIMARY KEY (organisation, registration, id),
    UNIQUE (organisation, registration, number),
    FOREIGN KEY (organisation, registration) REFERENCES registrations (organisation, id),
    CHECK (from_day <= until_day)
) STRICT, WITHOUT ROWID;

CREATE TABLE deadlines (
    organisation  TEXT NOT NULL,
    registration  TEXT NOT NULL,
    period        TEXT NOT NULL,
    opens_day     TEXT CHECK (opens_day = date(opens_day)),
    due_day       TEXT NOT NULL CHECK (due_day = date(due_day)),
    created_ms    INTEGER NOT NULL,
    PRIMARY KEY (organisation, registration, period),
    FOREIGN KEY (organisation, registration) REFERENCES registrations (organisation, id),
    CHECK (opens_day <= due_day)
) STRICT, WITHOUT ROWID;
CREATE INDEX deadlines_by_day ON deadlines (due_day);

-- Records say under which version they came, so a version is what it was, for ever.
CREATE TABLE templates (
    id          TEXT NOT NULL,
    version     TEXT NOT NULL,
    title       TEXT NOT NULL,
    text        TEXT NOT NULL,
    added_by    TEXT NOT NULL,
    added_ms    INTEGER NOT NULL,
    retired_ms  INTEGER,
    PRIMARY KEY (id, version)
) STRICT;

CREATE TRIGGER templates_are_kept BEFORE DELETE ON templates
BEGIN SELECT RAISE(ABORT, 'templates are kept for ever'); END;
CREATE TRIGGER template_versions_never_change BEFORE UPDATE OF id, version, title, text, added_by, added_ms ON templates
BEGIN SELECT RAISE(ABORT, 'a version of a template never changes'); END;
CREATE TRIGGER retired_templates_stay_retired BEFORE UPDATE OF retired_ms ON templates WHEN OLD.retired_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a retired version of a template stays retired'); END;
CREATE TRIGGER organisations_are_kept BEFORE DELETE ON organisations
BEGIN SELECT RAISE(ABORT, 'organisations are kept for ever'); END;
CREATE TRIGGER registrations_are_kept BEFORE DELETE ON registrations
BEGIN SELECT RAISE(ABORT, 'registrations are kept for ever'); END;
CREATE TRIGGER accreditations_are_kept BEFORE DELETE ON accreditations
BEGIN SELECT RAISE(ABORT, 'accreditations are kept for ever'); END;
