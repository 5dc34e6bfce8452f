-- How much is in each inbox. It is counted as mail comes, is read and is removed: two indexes that
-- held every message of every inbox, for its count and for those who read all projects at once,
-- were changed by every send, in places of their own for each recipient.
CREATE TABLE mailboxes (
  project TEXT NOT NULL,
  agent   TEXT NOT NULL,
  total   INTEGER NOT NULL,  -- rows of inbox; none = the mailbox is not here
  unread  INTEGER NOT NULL,  -- those without read_at
  home    INTEGER NOT NULL,  -- 1: of the agent's mailboxes the one that is not in inbox_abroad
  PRIMARY KEY (project, agent)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX mailboxes_at_home ON mailboxes (agent) WHERE home = 1;

-- Of who has mail in several projects, as few have: that of all but its home once more, so that all
-- of it can be read in order, however many projects there are.
CREATE TABLE inbox_abroad (
  agent   TEXT NOT NULL,
  cursor  INTEGER NOT NULL,
  project TEXT NOT NULL,
  PRIMARY KEY (agent, cursor)
) STRICT, WITHOUT ROWID;

INSERT INTO mailboxes (project, agent, total, unread, home)
  SELECT project, agent, COUNT(*), COUNT(*) - COUNT(read_at), 0 FROM inbox GROUP BY project, agent;
UPDATE mailboxes SET home = 1 WHERE (project, agent) IN  -- the fullest of each agent
  (SELECT project, agent FROM (SELECT project, agent, max(total) FROM mailboxes GROUP BY agent));
INSERT INTO inbox_abroad (agent, cursor, project)
  SELECT i.agent, i.cursor, i.project FROM mailboxes AS b
  CROSS JOIN inbox AS i ON i.project = b.project AND i.agent = b.agent WHERE b.home = 0;
DROP INDEX inbox_anywhere;
DROP INDEX inbox_unread;
