-- Which log this is. Every database has an id of its own, so that clients can tell that the
-- cursors they keep are those of another one.
INSERT INTO meta (key, value) VALUES ('log_id', lower(hex(randomblob(16))));
