-- A path covers what is below it, so the key of a path ends in a slash, as that of a directory
-- does.
UPDATE reservations SET prefix = prefix || '/'
  WHERE released_at IS NULL AND prefix <> '' AND substr(prefix, -1) <> '/';
