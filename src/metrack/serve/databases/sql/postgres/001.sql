CREATE TABLE metrack_versions (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
CREATE TABLE metrics (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    n_features integer NOT NULL,
    estimator text NOT NULL,
    settings text NOT NULL,
    features text,                         -- their names, a JSON list
    created double precision NOT NULL,
    sequence bigint NOT NULL DEFAULT 0,    -- of the last judgement
    cut bigint NOT NULL DEFAULT 0,         -- judgements up to here are no longer in the log
    saved bigint NOT NULL DEFAULT 0,       -- judgements up to here are in the saved state
    summary text NOT NULL DEFAULT '{}',    -- of the published snapshot
    items bigint NOT NULL DEFAULT 0        -- changes of its items
) WITH (fillfactor = 50);                  -- rows change with every request: room to do so in place
CREATE TABLE judgements (
    metric bigint NOT NULL,
    sequence bigint NOT NULL,
    time double precision NOT NULL,
    id text, judge text, a text, b text,
    y smallint NOT NULL CHECK (y BETWEEN -1 AND 1),  -- 0: unsure, which nothing is learned from
    points bytea NOT NULL,                 -- x, then z
    PRIMARY KEY (metric, sequence)
);
CREATE INDEX by_judge ON judgements (metric, judge, sequence) WHERE judge IS NOT NULL;
-- Digests of ids; these stay when the log is cut off.
CREATE TABLE ids (metric bigint, digest bytea, PRIMARY KEY (metric, digest));
CREATE TABLE items (
    metric bigint NOT NULL,
    id text NOT NULL,
    vector bytea NOT NULL,
    text text,
    image text,
    rowid bigint GENERATED ALWAYS AS IDENTITY,  -- the order in which they came, as SQLite has it
    PRIMARY KEY (metric, id)
);
-- Deleted metrics whose rows in other tables are still to be removed.
CREATE TABLE gone (metric bigint PRIMARY KEY);
CREATE TABLE tokens (digest text PRIMARY KEY, name text NOT NULL, scopes text NOT NULL, metrics text NOT NULL);

-- How often the right to learn the metrics of a slot has changed hands. Who writes with an earlier
-- number has lost it, and writes nothing.
CREATE TABLE slots (slot integer PRIMARY KEY, fence bigint NOT NULL);
CREATE TABLE states (metric bigint PRIMARY KEY, fence bigint NOT NULL, sequence bigint NOT NULL, body bytea NOT NULL);
CREATE TABLE snapshots (metric bigint PRIMARY KEY, fence bigint NOT NULL, sequence bigint NOT NULL, body bytea NOT NULL);

-- Numbers do not get smaller by being compressed.
ALTER TABLE judgements ALTER points SET STORAGE EXTERNAL;
ALTER TABLE items ALTER vector SET STORAGE EXTERNAL;
ALTER TABLE states ALTER body SET STORAGE EXTERNAL;
ALTER TABLE snapshots ALTER body SET STORAGE EXTERNAL;

-- Every process hears of every change: the number of the metric, or that it is tokens. The other
-- tables of a deleted metric may be large, and are swept bit by bit; these two are a row each.
CREATE FUNCTION tell_of_metric() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM states WHERE metric = old.id;
        DELETE FROM snapshots WHERE metric = old.id;
    END IF;
    PERFORM pg_notify('metrack', coalesce(new.id, old.id)::text);
    RETURN NULL;
END $$;
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON metrics
    FOR EACH ROW EXECUTE FUNCTION tell_of_metric();
CREATE FUNCTION tell_of_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('metrack', 'tokens');
    RETURN NULL;
END $$;
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON tokens
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_tokens();

-- SQLite's name for it, so that one query serves both.
CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT strpos($1, $2)';
