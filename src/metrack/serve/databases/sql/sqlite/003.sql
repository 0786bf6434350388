ALTER TABLE metrics ADD COLUMN about TEXT NOT NULL DEFAULT '{}';  -- what is judged, and how: JSON
ALTER TABLE items ADD COLUMN record TEXT;         -- fields that judges see, a JSON object
ALTER TABLE judgements ADD COLUMN label TEXT;     -- class of a point
ALTER TABLE judgements ADD COLUMN corrects INTEGER;  -- sequence of the one that it takes the place of
CREATE UNIQUE INDEX by_corrected ON judgements (metric, corrects) WHERE corrects IS NOT NULL;
