-- Claims of agents on paths. A row is there from its grant until its owner lets it go and the
-- retention forgets it, or until it ran out and the sweeper finds its owner gone. What is past
-- expires_at, or has released_at, holds nothing.
CREATE TABLE reservations (
  id          TEXT NOT NULL PRIMARY KEY,
  project     TEXT NOT NULL,
  agent       TEXT NOT NULL,     -- need not be registered
  pattern     TEXT NOT NULL,     -- as it was sent
  literal     INTEGER NOT NULL,  -- the pattern is a path, whatever characters it has
  canonical   TEXT NOT NULL,     -- equal for patterns that match the same paths
  prefix      TEXT NOT NULL,     -- the key by which overlapping patterns are found
  is_exclusive INTEGER NOT NULL,
  reason      TEXT NOT NULL,
  fence       INTEGER NOT NULL,  -- of the grant; rises in its project
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  released_at INTEGER,           -- NULL while it was not let go
  version     INTEGER NOT NULL DEFAULT 1  -- one more with every change
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_by_prefix ON reservations (project, prefix, expires_at)
  WHERE released_at IS NULL;
CREATE INDEX reservations_held_by ON reservations (agent, project, expires_at)
  WHERE released_at IS NULL;
CREATE INDEX reservations_expiring ON reservations (expires_at) WHERE released_at IS NULL;
CREATE INDEX reservations_released ON reservations (released_at) WHERE released_at IS NOT NULL;
CREATE INDEX reservations_of_agent ON reservations (agent, created_at);
CREATE INDEX reservations_of_project ON reservations (project, created_at)
  WHERE released_at IS NULL;

-- The last fence that was given in a project.
CREATE TABLE fences (
  project TEXT NOT NULL PRIMARY KEY,
  last    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
