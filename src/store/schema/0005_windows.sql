-- The terminals that agents work in. One that is expired stays, and counts again when it is named
-- again.
CREATE TABLE windows (
  project        TEXT NOT NULL,
  uuid           TEXT NOT NULL,
  id             TEXT NOT NULL,
  agent_id       TEXT NOT NULL,
  display_name   TEXT NOT NULL,
  tmux_target    TEXT NOT NULL,     -- '' when nothing can be put before it
  created_at     INTEGER NOT NULL,
  last_active_at INTEGER NOT NULL,
  expired_at     INTEGER,           -- NULL while it counts
  PRIMARY KEY (project, uuid)
) STRICT, WITHOUT ROWID;
CREATE INDEX windows_active ON windows (project, last_active_at) WHERE expired_at IS NULL;
CREATE INDEX windows_of_agent ON windows (project, agent_id, last_active_at)
  WHERE expired_at IS NULL;

-- Messages that were to be put before a recipient at once: written with the message, so that it is
-- surfaced later if that fails or is never known to have worked.
CREATE TABLE pokes (
  cursor      INTEGER NOT NULL,     -- of the message
  recipient   TEXT NOT NULL,
  project     TEXT NOT NULL,        -- of the message
  injected_at INTEGER,              -- it was put before the recipient
  surfaced_at INTEGER,              -- the recipient has seen it otherwise
  PRIMARY KEY (cursor, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX pokes_pending ON pokes (project, recipient, cursor)
  WHERE injected_at IS NULL AND surfaced_at IS NULL;

-- What may be changed while the server runs: one row.
CREATE TABLE config (
  id                     INTEGER PRIMARY KEY CHECK (id = 1),
  live_transport_enabled INTEGER NOT NULL
) STRICT;
INSERT INTO config (id, live_transport_enabled) VALUES (1, 1);
