-- The ledger: one row per call, opened before anything happens and closed when it has ended.

-- One row per process that ever wrote. It holds an exclusive lock on boots/<id>.lock for as long as it lives.
CREATE TABLE boots (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    pid   INTEGER NOT NULL,
    began INTEGER NOT NULL              -- milliseconds since 1970
);

-- AUTOINCREMENT: a number is never used again, also after old rows were deleted, so that `after` stays a safe cursor.
CREATE TABLE entries (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    boot        INTEGER NOT NULL REFERENCES boots (id),
    call        TEXT    NOT NULL,
    at          INTEGER NOT NULL,       -- milliseconds since 1970
    caller      TEXT    NOT NULL,
    caller_kind TEXT    NOT NULL,
    surface     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    bytes_in    INTEGER NOT NULL,
    -- NULL until the entry is closed; `outcome` says whether it is.
    closed_at   INTEGER,
    outcome     TEXT,
    item        TEXT,
    source      TEXT,
    duration_us INTEGER,
    bytes_out   INTEGER,
    layer       TEXT,
    detail      TEXT
);

-- Each index ends in the row number by itself, so a filtered list comes in order without sorting. `at` also finds what a
-- retention limit would delete.
CREATE UNIQUE INDEX entries_call ON entries (call);
CREATE INDEX entries_at ON entries (at);
CREATE INDEX entries_caller ON entries (caller);
CREATE INDEX entries_source ON entries (source) WHERE source IS NOT NULL;
CREATE INDEX entries_outcome ON entries (outcome) WHERE outcome IS NOT NULL;
CREATE INDEX entries_open ON entries (boot) WHERE outcome IS NULL;
