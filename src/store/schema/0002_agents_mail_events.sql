-- The log of everything that happened: one row per committed change, written in the transaction of
-- that change. The cursor is its place in the order of all changes; AUTOINCREMENT keeps a pruned
-- one from being given again. Only the oldest rows are ever removed.
CREATE TABLE events (
  cursor     INTEGER PRIMARY KEY AUTOINCREMENT,
  type       TEXT NOT NULL,
  project    TEXT NOT NULL,
  entity_id  TEXT NOT NULL,
  agent      TEXT,              -- who did it, where that is known and may be shown
  created_at INTEGER NOT NULL,
  data       TEXT               -- JSON
) STRICT;
CREATE INDEX events_of_project ON events (project);  -- and, as every index here, the row's number

-- Who works, or worked, in a project. A row is never removed: mail and contacts refer to it.
CREATE TABLE agents (
  id                  TEXT NOT NULL PRIMARY KEY,
  project             TEXT NOT NULL,
  session_id          TEXT NOT NULL,
  name                TEXT NOT NULL,
  token_hash          BLOB NOT NULL,  -- SHA-256; the token itself is known to the agent alone
  capabilities        TEXT,           -- JSON array; NULL when none were sent
  metadata            TEXT,           -- JSON object; NULL when none was sent
  status              TEXT NOT NULL,
  contact_policy      TEXT NOT NULL,
  live_contact_policy TEXT NOT NULL,
  focus_state         TEXT NOT NULL,
  focus_at            INTEGER NOT NULL,
  created_at          INTEGER NOT NULL,
  last_seen           INTEGER NOT NULL,
  deregistered_at     INTEGER         -- NULL while it lives
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agents_by_session ON agents (project, session_id);
CREATE UNIQUE INDEX agents_by_token ON agents (token_hash);
CREATE INDEX agents_by_name ON agents (project, name) WHERE deregistered_at IS NULL;
CREATE INDEX agents_living ON agents (project, last_seen) WHERE deregistered_at IS NULL;
CREATE INDEX agents_living_anywhere ON agents (last_seen) WHERE deregistered_at IS NULL;

-- Whom an agent has allowed to write to it. One direction only.
CREATE TABLE contacts (
  agent_id   TEXT NOT NULL,
  contact_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, contact_id)
) STRICT, WITHOUT ROWID;

-- What was sent. The cursor is that of its event, so a message stands in the log, in inboxes,
-- threads and topics under one number.
CREATE TABLE messages (
  cursor       INTEGER PRIMARY KEY,
  project      TEXT NOT NULL,
  id           TEXT NOT NULL,
  sender       TEXT NOT NULL,
  thread_id    TEXT,             -- NULL when it belongs to none
  topic        TEXT,             -- trimmed, lower case; NULL when it has none
  subject      TEXT NOT NULL,
  body         TEXT NOT NULL,
  importance   TEXT NOT NULL,
  ack_required INTEGER NOT NULL,
  recipients   TEXT NOT NULL,    -- JSON {"to":[],"cc":[],"bcc":[],"denied":…}, each address once
  created_at   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX messages_by_id ON messages (project, id);
CREATE INDEX messages_of_thread ON messages (project, thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX messages_of_topic ON messages (project, topic) WHERE topic IS NOT NULL;

-- One row per message and recipient, however addressed.
CREATE TABLE inbox (
  project      TEXT NOT NULL,
  agent        TEXT NOT NULL,
  cursor       INTEGER NOT NULL,  -- of the message
  kind         TEXT NOT NULL,     -- to, cc, bcc
  ack_required INTEGER NOT NULL,  -- as the message has it
  read_at      INTEGER,
  ack_at       INTEGER,
  PRIMARY KEY (project, agent, cursor)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_anywhere ON inbox (agent, cursor);
-- Their columns repeat what they are narrowed to: without that SQLite prefers the primary key, and
-- with it a walk over the whole inbox.
CREATE INDEX inbox_unread ON inbox (project, agent, read_at) WHERE read_at IS NULL;
CREATE INDEX inbox_unacked ON inbox (project, agent, ack_required, ack_at, cursor)
  WHERE ack_required = 1 AND ack_at IS NULL;

-- Which threads an agent takes part in, as sender or recipient.
CREATE TABLE thread_members (
  project       TEXT NOT NULL,
  thread_id     TEXT NOT NULL,
  agent         TEXT NOT NULL,
  last_cursor   INTEGER NOT NULL,  -- of the newest message that it sent or received there
  message_count INTEGER NOT NULL,
  posted        INTEGER NOT NULL,  -- 1: it has sent one itself
  PRIMARY KEY (project, thread_id, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_members_by_agent ON thread_members (project, agent, last_cursor);
