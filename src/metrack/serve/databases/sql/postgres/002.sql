ALTER TABLE metrics ADD COLUMN about text NOT NULL DEFAULT '{}';  -- what is judged, and how: JSON
ALTER TABLE items ADD COLUMN record text;         -- fields that judges see, a JSON object
ALTER TABLE judgements ADD COLUMN label text;     -- class of a point
ALTER TABLE judgements ADD COLUMN corrects bigint;   -- sequence of the one that it takes the place of
CREATE UNIQUE INDEX by_corrected ON judgements (metric, corrects) WHERE corrects IS NOT NULL;
ALTER TABLE tokens ADD COLUMN expires double precision;  -- seconds since 1970; null: never
