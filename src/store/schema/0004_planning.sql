-- What agents plan by, one row each: specs, epics, stories, tasks, insights, sessions and critical
-- user journeys. `body` is the whole of it as clients see it; the other columns repeat what it is
-- found, locked and sorted by.
CREATE TABLE plans (
  kind     TEXT NOT NULL,     -- spec, epic, story, task, insight, session, cuj
  project  TEXT NOT NULL,
  id       TEXT NOT NULL,     -- chosen by who made it, else a UUID
  version  INTEGER NOT NULL,  -- one more with each change
  filter_a TEXT NOT NULL,     -- spec, task, session: status; epic, insight, cuj: spec_id;
                              -- story: epic_id
  filter_b TEXT NOT NULL,     -- task: agent; insight: category; the others have none
  weight   REAL NOT NULL,     -- the greater one is listed first; insight: score; cuj: priority
  list_at  INTEGER NOT NULL,  -- then the later one; insight, session: its birth; else its change
  body     TEXT NOT NULL,     -- JSON
  PRIMARY KEY (kind, project, id)
) STRICT;
CREATE INDEX plans_in_order ON plans (kind, project, weight, list_at, id);
CREATE INDEX plans_by_a ON plans (kind, project, filter_a, weight, list_at, id);
CREATE INDEX plans_by_b ON plans (kind, project, filter_b, weight, list_at, id);
CREATE INDEX plans_anywhere ON plans (kind, weight, list_at, project, id);

-- Which features a critical user journey touches. Neither need be known here.
CREATE TABLE cuj_links (
  project    TEXT NOT NULL,
  cuj_id     TEXT NOT NULL,
  feature_id TEXT NOT NULL,
  linked_at  INTEGER NOT NULL,
  PRIMARY KEY (project, cuj_id, feature_id)
) STRICT, WITHOUT ROWID;
