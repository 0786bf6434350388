ALTER TABLE metrics ADD COLUMN items INTEGER NOT NULL DEFAULT 0;  -- changes of its items
-- Deleted metrics whose rows in other tables are still to be removed.
CREATE TABLE gone (metric INTEGER PRIMARY KEY);
INSERT INTO gone
    SELECT metric FROM (
        SELECT metric FROM judgements UNION SELECT metric FROM items UNION SELECT metric FROM ids
    ) WHERE metric NOT IN (SELECT id FROM metrics);
