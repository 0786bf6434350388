CREATE TABLE metrics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- names a folder, so no number is used twice
    name TEXT NOT NULL UNIQUE,
    n_features INTEGER NOT NULL,
    estimator TEXT NOT NULL,
    settings TEXT NOT NULL,
    features TEXT,                         -- their names, a JSON list
    created REAL NOT NULL,
    sequence INTEGER NOT NULL DEFAULT 0,   -- of the last judgement
    cut INTEGER NOT NULL DEFAULT 0,        -- judgements up to here are no longer in the log
    saved INTEGER NOT NULL DEFAULT 0,      -- judgements up to here are in the saved state
    summary TEXT NOT NULL DEFAULT '{}'     -- of that state
);
CREATE TABLE judgements (
    metric INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    time REAL NOT NULL,
    id TEXT, judge TEXT, a TEXT, b TEXT,
    y INTEGER NOT NULL,                    -- 0: unsure, which nothing is learned from
    points BLOB NOT NULL                   -- x, then z
);
CREATE UNIQUE INDEX by_sequence ON judgements (metric, sequence);
CREATE INDEX by_judge ON judgements (metric, judge, sequence) WHERE judge IS NOT NULL;
-- Digests of ids; these stay when the log is cut off.
CREATE TABLE ids (metric INTEGER, digest BLOB, PRIMARY KEY (metric, digest)) WITHOUT ROWID;
CREATE TABLE items (
    metric INTEGER NOT NULL, id TEXT NOT NULL, vector BLOB NOT NULL, text TEXT, image TEXT
);
CREATE UNIQUE INDEX by_item ON items (metric, id);
