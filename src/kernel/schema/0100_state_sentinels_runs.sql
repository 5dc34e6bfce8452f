-- Names and types are those that files of the older program have, so that they can be taken over:
-- hence IF NOT EXISTS everywhere, and what lift.cc adds first. All times are whole Unix seconds.

CREATE TABLE IF NOT EXISTS state (
  key        TEXT    NOT NULL,
  scope_id   TEXT    NOT NULL,
  payload    TEXT    NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER,
  version    INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (key, scope_id)
);
CREATE INDEX IF NOT EXISTS ic_state_scope ON state (scope_id, key);
CREATE INDEX IF NOT EXISTS ic_state_expires ON state (expires_at) WHERE expires_at IS NOT NULL;

-- interval_s is that of the claim: 0 = once, for good; NULL = not known, from an older file.
CREATE TABLE IF NOT EXISTS sentinels (
  name       TEXT    NOT NULL,
  scope_id   TEXT    NOT NULL,
  last_fired INTEGER NOT NULL DEFAULT 0,
  interval_s INTEGER,
  PRIMARY KEY (name, scope_id)
);
CREATE INDEX IF NOT EXISTS ic_sentinels_prune ON sentinels (last_fired)
  WHERE interval_s > 0 OR interval_s IS NULL;
CREATE INDEX IF NOT EXISTS ic_sentinels_once ON sentinels (last_fired) WHERE interval_s = 0;

CREATE TABLE IF NOT EXISTS runs (
  id              TEXT    NOT NULL PRIMARY KEY,
  project_dir     TEXT    NOT NULL,
  goal            TEXT    NOT NULL,
  status          TEXT    NOT NULL DEFAULT 'active',
  phase           TEXT    NOT NULL,
  complexity      INTEGER NOT NULL DEFAULT 3,
  force_full      INTEGER NOT NULL DEFAULT 0,
  auto_advance    INTEGER NOT NULL DEFAULT 1,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  completed_at    INTEGER,
  scope_id        TEXT,
  metadata        TEXT,
  phases          TEXT,
  token_budget    INTEGER,
  budget_warn_pct INTEGER NOT NULL DEFAULT 80,
  parent_run_id   TEXT,
  goal_id         TEXT,
  max_dispatches  INTEGER NOT NULL DEFAULT 0,
  budget_enforce  INTEGER NOT NULL DEFAULT 0,
  max_agents      INTEGER NOT NULL DEFAULT 0,
  gate_rules      TEXT,
  bead_id         TEXT,
  session_id      TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS ic_runs_one_per_bead ON runs (project_dir, bead_id)
  WHERE status = 'active' AND bead_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ic_runs_current ON runs (project_dir, created_at)
  WHERE status = 'active';
CREATE INDEX IF NOT EXISTS ic_runs_created ON runs (created_at);
CREATE INDEX IF NOT EXISTS ic_runs_status ON runs (status, created_at);
CREATE INDEX IF NOT EXISTS ic_runs_project ON runs (project_dir, created_at);
CREATE INDEX IF NOT EXISTS ic_runs_scope ON runs (scope_id) WHERE scope_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ic_runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ic_runs_goal ON runs (goal_id) WHERE goal_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS phase_events (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id        TEXT    NOT NULL REFERENCES runs (id),
  from_phase    TEXT    NOT NULL,
  to_phase      TEXT    NOT NULL,
  event_type    TEXT    NOT NULL DEFAULT 'advance',
  gate_result   TEXT,
  gate_tier     TEXT,
  reason        TEXT,
  envelope_json TEXT,
  created_at    INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS ic_phase_events_run ON phase_events (run_id, id);

CREATE TABLE IF NOT EXISTS run_agents (
  id          TEXT    NOT NULL PRIMARY KEY,
  run_id      TEXT    NOT NULL REFERENCES runs (id),
  agent_type  TEXT    NOT NULL DEFAULT 'claude',
  name        TEXT,
  status      TEXT    NOT NULL DEFAULT 'active',
  dispatch_id TEXT,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS ic_run_agents_run ON run_agents (run_id, created_at);

CREATE TABLE IF NOT EXISTS run_artifacts (
  id           TEXT    NOT NULL PRIMARY KEY,
  run_id       TEXT    NOT NULL REFERENCES runs (id),
  phase        TEXT    NOT NULL,
  path         TEXT    NOT NULL,
  type         TEXT    NOT NULL DEFAULT 'file',
  content_hash TEXT,
  dispatch_id  TEXT,
  status       TEXT    NOT NULL DEFAULT 'active',
  created_at   INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS ic_run_artifacts_run ON run_artifacts (run_id, phase, created_at);

CREATE TABLE IF NOT EXISTS phase_actions (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id      TEXT    NOT NULL REFERENCES runs (id),
  phase       TEXT    NOT NULL,
  action_type TEXT    NOT NULL DEFAULT 'command',
  command     TEXT    NOT NULL,
  args        TEXT,
  mode        TEXT    NOT NULL DEFAULT 'interactive',
  priority    INTEGER NOT NULL DEFAULT 0,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS ic_phase_actions_one ON phase_actions (run_id, phase, command);

-- Agent processes. Nothing starts them yet; runs count what older files know of them.
CREATE TABLE IF NOT EXISTS dispatches (
  id                 TEXT    NOT NULL PRIMARY KEY,
  agent_type         TEXT    NOT NULL DEFAULT 'codex',
  status             TEXT    NOT NULL DEFAULT 'spawned',
  project_dir        TEXT    NOT NULL,
  prompt_file        TEXT,
  prompt_hash        TEXT,
  output_file        TEXT,
  verdict_file       TEXT,
  pid                INTEGER,
  exit_code          INTEGER,
  name               TEXT,
  model              TEXT,
  sandbox            TEXT,
  sandbox_spec       TEXT,
  sandbox_effective  TEXT,
  timeout_sec        INTEGER,
  turns              INTEGER NOT NULL DEFAULT 0,
  commands           INTEGER NOT NULL DEFAULT 0,
  messages           INTEGER NOT NULL DEFAULT 0,
  input_tokens       INTEGER NOT NULL DEFAULT 0,
  output_tokens      INTEGER NOT NULL DEFAULT 0,
  cache_hits         INTEGER,
  created_at         INTEGER NOT NULL,
  started_at         INTEGER,
  completed_at       INTEGER,
  verdict_status     TEXT,
  verdict_summary    TEXT,
  error_message      TEXT,
  scope_id           TEXT,
  parent_id          TEXT,
  base_repo_commit   TEXT,
  retry_count        INTEGER NOT NULL DEFAULT 0,
  conflict_type      TEXT,
  quarantine_reason  TEXT,
  spawn_depth        INTEGER NOT NULL DEFAULT 0,
  parent_dispatch_id TEXT    NOT NULL DEFAULT '',
  pid_start          INTEGER
);
CREATE INDEX IF NOT EXISTS ic_dispatches_live ON dispatches (status)
  WHERE status IN ('spawned', 'running');
CREATE INDEX IF NOT EXISTS ic_dispatches_scope ON dispatches (scope_id)
  WHERE scope_id IS NOT NULL;

-- Locks on files. The server mirrors its reservations here.
CREATE TABLE IF NOT EXISTS coordination_locks (
  id          TEXT    NOT NULL PRIMARY KEY,
  type        TEXT    NOT NULL CHECK (type IN ('file_reservation', 'named_lock', 'write_set')),
  owner       TEXT    NOT NULL,
  scope       TEXT    NOT NULL,
  pattern     TEXT    NOT NULL,
  exclusive   INTEGER NOT NULL DEFAULT 1,
  reason      TEXT,
  ttl_seconds INTEGER,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER,
  released_at INTEGER,
  dispatch_id TEXT,
  run_id      TEXT,
  fence       INTEGER
);
CREATE INDEX IF NOT EXISTS ic_coordination_locks_scope ON coordination_locks (scope, type)
  WHERE released_at IS NULL;
CREATE INDEX IF NOT EXISTS ic_coordination_locks_owner ON coordination_locks (owner)
  WHERE released_at IS NULL;
CREATE INDEX IF NOT EXISTS ic_coordination_locks_expires ON coordination_locks (expires_at)
  WHERE released_at IS NULL AND expires_at IS NOT NULL;
