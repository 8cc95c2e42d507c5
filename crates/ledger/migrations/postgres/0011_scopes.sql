-- Who hands in what and by when, and the templates that workbooks are read by.

CREATE TABLE organisations (
    id          TEXT COLLATE "C" PRIMARY KEY,
    name        TEXT COLLATE "C" NOT NULL,
    -- As others know it.
    number      TEXT COLLATE "C",
    created_ms  BIGINT NOT NULL
);

-- Days are written YYYY-MM-DD, so that texts compare as days do.
CREATE TABLE registrations (
    organisation  TEXT COLLATE "C" NOT NULL REFERENCES organisations (id),
    id            TEXT COLLATE "C" NOT NULL,
    number        TEXT COLLATE "C" NOT NULL,
    title         TEXT COLLATE "C" NOT NULL,
    material      TEXT COLLATE "C",
    -- A template in whatever version; NULL as long as nothing can be handed in.
    template      TEXT COLLATE "C",
    from_day      TEXT COLLATE "C" CHECK (from_day = to_char(from_day::date, 'YYYY-MM-DD')),
    until_day     TEXT COLLATE "C" CHECK (until_day = to_char(until_day::date, 'YYYY-MM-DD')),
    created_ms    BIGINT NOT NULL,
    PRIMARY KEY (organisation, id),
    UNIQUE (organisation, number),
    CHECK (from_day <= until_day)
);
CREATE INDEX registrations_by_template ON registrations (template) WHERE template IS NOT NULL;

CREATE TABLE accreditations (
    organisation  TEXT COLLATE "C" NOT NULL,
    registration  TEXT COLLATE "C" NOT NULL,
    id            TEXT COLLATE "C" NOT NULL,
    number        TEXT COLLATE "C" NOT NULL,
    from_day      TEXT COLLATE "C" CHECK (from_day = to_char(from_day::date, 'YYYY-MM-DD')),
    until_day     TEXT COLLATE "C" CHECK (until_day = to_char(until_day::date, 'YYYY-MM-DD')),
    created_ms    BIGINT NOT NULL,
    PRIMARY KEY (organisation, registration, id),
    UNIQUE (organisation, registration, number),
    FOREIGN KEY (organisation, registration) REFERENCES registrations (organisation, id),
    CHECK (from_day <= until_day)
);

CREATE TABLE deadlines (
    organisation  TEXT COLLATE "C" NOT NULL,
    registration  TEXT COLLATE "C" NOT NULL,
    period        TEXT COLLATE "C" NOT NULL,
    opens_day     TEXT COLLATE "C" CHECK (opens_day = to_char(opens_day::date, 'YYYY-MM-DD')),
    due_day       TEXT COLLATE "C" NOT NULL CHECK (due_day = to_char(due_day::date, 'YYYY-MM-DD')),
    created_ms    BIGINT NOT NULL,
    PRIMARY KEY (organisation, registration, period),
    FOREIGN KEY (organisation, registration) REFERENCES registrations (organisation, id),
    CHECK (opens_day <= due_day)
);
CREATE INDEX deadlines_by_day ON deadlines (due_day);

-- Records say under which version they came, so a version is what it was, for ever.
CREATE TABLE templates (
    id          TEXT COLLATE "C" NOT NULL,
    version     TEXT COLLATE "C" NOT NULL,
    title       TEXT COLLATE "C" NOT NULL,
    text        TEXT COLLATE "C" NOT NULL,
    added_by    TEXT COLLATE "C" NOT NULL,
    added_ms    BIGINT NOT NULL,
    retired_ms  BIGINT,
    PRIMARY KEY (id, version)
);

CREATE TRIGGER templates_are_kept BEFORE DELETE ON templates FOR EACH ROW
EXECUTE FUNCTION refuse('templates are kept for ever');
CREATE TRIGGER template_versions_never_change BEFORE UPDATE OF id, version, title, text, added_by, added_ms ON templates FOR EACH ROW
EXECUTE FUNCTION refuse('a version of a template never changes');
CREATE TRIGGER retired_templates_stay_retired BEFORE UPDATE OF retired_ms ON templates FOR EACH ROW WHEN (OLD.retired_ms IS NOT NULL)
EXECUTE FUNCTION refuse('a retired version of a template stays retired');
CREATE TRIGGER organisations_are_kept BEFORE DELETE ON organisations FOR EACH ROW
EXECUTE FUNCTION refuse('organisations are kept for ever');
CREATE TRIGGER registrations_are_kept BEFORE DELETE ON registrations FOR EACH ROW
EXECUTE FUNCTION refuse('registrations are kept for ever');
CREATE TRIGGER accreditations_are_kept BEFORE DELETE ON accreditations FOR EACH ROW
EXECUTE FUNCTION refuse('accreditations are kept for ever');
