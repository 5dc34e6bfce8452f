-- What the older `ic` has in its files: each version adds to the one before it. Every table that
-- may hold something holds a row. Versions that are missing here changed nothing.
-- version 1
CREATE TABLE _migrate_lock (x INTEGER);
CREATE TABLE state (key TEXT NOT NULL, scope_id TEXT NOT NULL, payload TEXT NOT NULL, updated_at
  INTEGER NOT NULL DEFAULT (unixepoch()), expires_at INTEGER, PRIMARY KEY (key, scope_id));
INSERT INTO state (key, scope_id, payload, updated_at, expires_at) VALUES ('dispatch', 's1',
  '{"phase":"plan"}', 1700000000, NULL);
CREATE TABLE sentinels (name TEXT NOT NULL, scope_id TEXT NOT NULL, last_fired INTEGER NOT NULL
  DEFAULT (unixepoch()), PRIMARY KEY (name, scope_id));
INSERT INTO sentinels (name, scope_id, last_fired) VALUES ('once', 's1', unixepoch());
CREATE INDEX idx_state_scope ON state (scope_id, key);
CREATE INDEX idx_state_expires ON state (expires_at) WHERE expires_at IS NOT NULL;
-- version 2
CREATE TABLE dispatches (id TEXT NOT NULL PRIMARY KEY, agent_type TEXT NOT NULL DEFAULT 'codex',
  status TEXT NOT NULL DEFAULT 'spawned', project_dir TEXT NOT NULL, prompt_file TEXT, prompt_hash
  TEXT, output_file TEXT, verdict_file TEXT, pid INTEGER, exit_code INTEGER, name TEXT, model
  TEXT, sandbox TEXT DEFAULT 'workspace-write', timeout_sec INTEGER, turns INTEGER DEFAULT 0,
  commands INTEGER DEFAULT 0, messages INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, created_at INTEGER NOT NULL DEFAULT (unixepoch()), started_at
  INTEGER, completed_at INTEGER, verdict_status TEXT, verdict_summary TEXT, error_message TEXT,
  scope_id TEXT, parent_id TEXT);
INSERT INTO dispatches (id, project_dir, prompt_file, prompt_hash, output_file, verdict_file, pid,
  exit_code, name, model, timeout_sec, created_at, started_at, completed_at, verdict_status,
  verdict_summary, error_message, scope_id, parent_id) VALUES ('dispatch-1', 'project_dir',
  'prompt_file', 'prompt_hash', 'output_file', 'verdict_file', 3, 4, 'name', 'model', 1,
  1700000028, 1700000029, 1700000030, 'verdict_status', 'verdict_summary', 'error_message',
  'scope_id', 'parent_id');
CREATE INDEX idx_dispatches_status ON dispatches (status) WHERE status IN ('spawned', 'running');
CREATE INDEX idx_dispatches_scope ON dispatches (scope_id) WHERE scope_id IS NOT NULL;
-- version 3
CREATE TABLE runs (id TEXT NOT NULL PRIMARY KEY, project_dir TEXT NOT NULL, goal TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'active', phase TEXT NOT NULL DEFAULT 'brainstorm', complexity
  INTEGER NOT NULL DEFAULT 3, force_full INTEGER NOT NULL DEFAULT 0, auto_advance INTEGER NOT NULL
  DEFAULT 1, created_at INTEGER NOT NULL DEFAULT (unixepoch()), updated_at INTEGER NOT NULL
  DEFAULT (unixepoch()), completed_at INTEGER, scope_id TEXT, metadata TEXT);
INSERT INTO runs (id, project_dir, goal, created_at, updated_at, completed_at, scope_id, metadata)
  VALUES ('run00001', '/p', 'ship it', 1700000044, 1700000045, NULL, 's1', '{}');
CREATE TABLE phase_events (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL REFERENCES
  runs (id), from_phase TEXT NOT NULL, to_phase TEXT NOT NULL, event_type TEXT NOT NULL DEFAULT
  'advance', gate_result TEXT, gate_tier TEXT, reason TEXT, created_at INTEGER NOT NULL DEFAULT
  (unixepoch()));
INSERT INTO phase_events (run_id, from_phase, to_phase, gate_result, gate_tier, reason,
  created_at) VALUES ('run00001', 'from_phase', 'to_phase', 'gate_result', 'gate_tier', 'reason',
  1700000057);
CREATE INDEX idx_runs_status ON runs (status) WHERE status = 'active';
CREATE INDEX idx_phase_events_run ON phase_events (run_id);
-- version 4
CREATE TABLE run_agents (id TEXT NOT NULL PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs (id),
  agent_type TEXT NOT NULL DEFAULT 'claude', name TEXT, status TEXT NOT NULL DEFAULT 'active',
  dispatch_id TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()), updated_at INTEGER NOT NULL
  DEFAULT (unixepoch()));
INSERT INTO run_agents (id, run_id, name, dispatch_id, created_at, updated_at) VALUES ('id',
  'run00001', 'name', 'dispatch-1', 1700000064, 1700000065);
CREATE TABLE run_artifacts (id TEXT NOT NULL PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs
  (id), phase TEXT NOT NULL, path TEXT NOT NULL, type TEXT NOT NULL DEFAULT 'file', created_at
  INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO run_artifacts (id, run_id, phase, path, created_at) VALUES ('id', 'run00001', 'phase',
  'path', 1700000071);
CREATE INDEX idx_run_agents_run ON run_agents (run_id);
CREATE INDEX idx_run_agents_status ON run_agents (status) WHERE status = 'active';
CREATE INDEX idx_run_artifacts_run ON run_artifacts (run_id);
CREATE INDEX idx_run_artifacts_phase ON run_artifacts (run_id, phase);
-- version 5
CREATE TABLE dispatch_events (id INTEGER PRIMARY KEY AUTOINCREMENT, dispatch_id TEXT NOT NULL,
  run_id TEXT, from_status TEXT NOT NULL, to_status TEXT NOT NULL, event_type TEXT NOT NULL
  DEFAULT 'status_change', reason TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO dispatch_events (dispatch_id, run_id, from_status, to_status, created_at) VALUES
  ('dispatch-1', 'run00001', 'from_status', 'to_status', 1700000079);
-- version 6
ALTER TABLE dispatches ADD COLUMN cache_hits INTEGER;
ALTER TABLE runs ADD COLUMN phases TEXT;
ALTER TABLE runs ADD COLUMN token_budget INTEGER;
ALTER TABLE runs ADD COLUMN budget_warn_pct INTEGER DEFAULT 80;
ALTER TABLE run_artifacts ADD COLUMN content_hash TEXT;
ALTER TABLE run_artifacts ADD COLUMN dispatch_id TEXT;
-- version 7
CREATE TABLE interspect_events (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, agent_name TEXT
  NOT NULL, event_type TEXT NOT NULL, override_reason TEXT, context_json TEXT, session_id TEXT,
  project_dir TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO interspect_events (run_id, agent_name, event_type, created_at) VALUES ('run00001',
  'agent_name', 'event_type', 1700000088);
-- version 8
ALTER TABLE run_artifacts ADD COLUMN status TEXT NOT NULL DEFAULT 'active';
-- version 9
CREATE TABLE discoveries (id TEXT PRIMARY KEY, source TEXT NOT NULL, source_id TEXT NOT NULL,
  title TEXT NOT NULL, summary TEXT NOT NULL DEFAULT '', url TEXT NOT NULL DEFAULT '',
  raw_metadata TEXT NOT NULL DEFAULT '{}', embedding BLOB, relevance_score REAL NOT NULL DEFAULT
  0.0, confidence_tier TEXT NOT NULL DEFAULT 'low', status TEXT NOT NULL DEFAULT 'new', run_id
  TEXT, bead_id TEXT, discovered_at INTEGER NOT NULL DEFAULT (unixepoch()), promoted_at INTEGER,
  reviewed_at INTEGER, UNIQUE (source, source_id));
INSERT INTO discoveries (id, source, source_id, title, run_id) VALUES ('id', 'source',
  'source_id', 'title', 'run00001');
CREATE TABLE discovery_events (id INTEGER PRIMARY KEY AUTOINCREMENT, discovery_id TEXT NOT NULL,
  event_type TEXT NOT NULL, from_status TEXT NOT NULL DEFAULT '', to_status TEXT NOT NULL DEFAULT
  '', payload TEXT NOT NULL DEFAULT '{}', created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO discovery_events (discovery_id, event_type, created_at) VALUES ('discovery_id',
  'event_type', 1700000111);
CREATE TABLE feedback_signals (id INTEGER PRIMARY KEY AUTOINCREMENT, discovery_id TEXT NOT NULL,
  signal_type TEXT NOT NULL, signal_data TEXT NOT NULL DEFAULT '{}', actor TEXT NOT NULL DEFAULT
  'system', created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO feedback_signals (discovery_id, signal_type, created_at) VALUES ('discovery_id',
  'signal_type', 1700000117);
CREATE TABLE interest_profile (id INTEGER PRIMARY KEY CHECK (id = 1), topic_vector BLOB,
  keyword_weights TEXT NOT NULL DEFAULT '{}', source_weights TEXT NOT NULL DEFAULT '{}',
  updated_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO interest_profile (id, updated_at) VALUES (1, 1700000122);
-- version 11
ALTER TABLE dispatches ADD COLUMN base_repo_commit TEXT;
ALTER TABLE dispatches ADD COLUMN retry_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dispatches ADD COLUMN conflict_type TEXT;
ALTER TABLE dispatches ADD COLUMN quarantine_reason TEXT;
CREATE TABLE merge_intents (id INTEGER PRIMARY KEY AUTOINCREMENT, dispatch_id TEXT NOT NULL,
  run_id TEXT, base_commit TEXT NOT NULL, patch_hash TEXT, status TEXT NOT NULL DEFAULT 'pending',
  result_commit TEXT, conflict_files TEXT, error_message TEXT, created_at INTEGER NOT NULL DEFAULT
  (unixepoch()), completed_at INTEGER);
INSERT INTO merge_intents (dispatch_id, run_id, base_commit, created_at) VALUES ('dispatch-1',
  'run00001', 'base_commit', 1700000132);
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;
ALTER TABLE runs ADD COLUMN max_dispatches INTEGER DEFAULT 0;
CREATE TABLE project_deps (id INTEGER PRIMARY KEY AUTOINCREMENT, portfolio_run_id TEXT NOT NULL
  REFERENCES runs (id), upstream_project TEXT NOT NULL, downstream_project TEXT NOT NULL,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()), UNIQUE (portfolio_run_id, upstream_project,
  downstream_project));
INSERT INTO project_deps (portfolio_run_id, upstream_project, downstream_project, created_at)
  VALUES ('run00001', 'upstream_project', 'downstream_project', 1700000138);
CREATE INDEX idx_runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
-- version 20
ALTER TABLE dispatches ADD COLUMN sandbox_spec TEXT;
ALTER TABLE dispatches ADD COLUMN sandbox_effective TEXT;
ALTER TABLE dispatches ADD COLUMN spawn_depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dispatches ADD COLUMN parent_dispatch_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN budget_enforce INTEGER DEFAULT 0;
ALTER TABLE runs ADD COLUMN max_agents INTEGER DEFAULT 0;
ALTER TABLE runs ADD COLUMN gate_rules TEXT;
CREATE TABLE lanes (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, lane_type TEXT NOT NULL
  DEFAULT 'standing', status TEXT NOT NULL DEFAULT 'active', description TEXT NOT NULL DEFAULT '',
  metadata TEXT NOT NULL DEFAULT '{}', created_at INTEGER NOT NULL DEFAULT (unixepoch()),
  updated_at INTEGER NOT NULL DEFAULT (unixepoch()), closed_at INTEGER, UNIQUE (name));
INSERT INTO lanes (id, name, created_at, updated_at) VALUES ('lane-1', 'name', 1700000145,
  1700000146);
CREATE TABLE lane_events (id INTEGER PRIMARY KEY AUTOINCREMENT, lane_id TEXT NOT NULL REFERENCES
  lanes (id), event_type TEXT NOT NULL, payload TEXT NOT NULL DEFAULT '{}', created_at INTEGER NOT
  NULL DEFAULT (unixepoch()));
INSERT INTO lane_events (lane_id, event_type, created_at) VALUES ('lane-1', 'event_type',
  1700000152);
CREATE TABLE lane_members (lane_id TEXT NOT NULL REFERENCES lanes (id), bead_id TEXT NOT NULL,
  added_at INTEGER NOT NULL DEFAULT (unixepoch()), PRIMARY KEY (lane_id, bead_id));
INSERT INTO lane_members (lane_id, bead_id) VALUES ('lane-1', 'bead_id');
CREATE TABLE phase_actions (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL REFERENCES
  runs (id), phase TEXT NOT NULL, action_type TEXT NOT NULL DEFAULT 'command', command TEXT NOT
  NULL, args TEXT, mode TEXT NOT NULL DEFAULT 'interactive', priority INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()), updated_at INTEGER NOT NULL DEFAULT
  (unixepoch()), UNIQUE (run_id, phase, command));
INSERT INTO phase_actions (run_id, phase, command, args, created_at, updated_at) VALUES
  ('run00001', 'phase', 'command', 'args', 1700000164, 1700000165);
CREATE TABLE audit_log (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, event_type
  TEXT NOT NULL, actor TEXT NOT NULL, target TEXT NOT NULL DEFAULT '', payload TEXT NOT NULL
  DEFAULT '{}', metadata TEXT NOT NULL DEFAULT '{}', prev_hash TEXT NOT NULL DEFAULT '', checksum
  TEXT NOT NULL, sequence_num INTEGER NOT NULL, created_at INTEGER NOT NULL DEFAULT
  (unixepoch()));
INSERT INTO audit_log (session_id, event_type, actor, checksum, sequence_num, created_at) VALUES
  ('session_id', 'event_type', 'actor', 'checksum', 0, 1700000176);
CREATE TABLE cost_reconciliations (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,
  dispatch_id TEXT, reported_in INTEGER NOT NULL, reported_out INTEGER NOT NULL, billed_in INTEGER
  NOT NULL, billed_out INTEGER NOT NULL, delta_in INTEGER NOT NULL, delta_out INTEGER NOT NULL,
  source TEXT NOT NULL DEFAULT 'manual', created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO cost_reconciliations (run_id, dispatch_id, reported_in, reported_out, billed_in,
  billed_out, delta_in, delta_out, created_at) VALUES ('run00001', 'dispatch-1', 5, 6, 0, 1, 2, 3,
  1700000187);
CREATE TABLE coordination_locks (id TEXT PRIMARY KEY, type TEXT NOT NULL CHECK (type IN
  ('file_reservation', 'named_lock', 'write_set')), owner TEXT NOT NULL, scope TEXT NOT NULL,
  pattern TEXT NOT NULL, exclusive INTEGER NOT NULL DEFAULT 1, reason TEXT, ttl_seconds INTEGER,
  created_at INTEGER NOT NULL, expires_at INTEGER, released_at INTEGER, dispatch_id TEXT, run_id
  TEXT);
INSERT INTO coordination_locks (id, type, owner, scope, pattern, reason, ttl_seconds, created_at,
  expires_at, released_at, dispatch_id, run_id) VALUES ('id', 'named_lock', 'owner', 'scope',
  'pattern', 'reason', 6, 1700000196, 1700000197, 1700000198, 'dispatch-1', 'run00001');
CREATE TABLE coordination_events (id INTEGER PRIMARY KEY AUTOINCREMENT, lock_id TEXT NOT NULL,
  run_id TEXT, event_type TEXT NOT NULL, owner TEXT NOT NULL, pattern TEXT NOT NULL, scope TEXT
  NOT NULL, reason TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO coordination_events (lock_id, run_id, event_type, owner, pattern, scope, created_at)
  VALUES ('lock_id', 'run00001', 'event_type', 'owner', 'pattern', 'scope', 1700000209);
CREATE TABLE scheduler_jobs (id TEXT PRIMARY KEY, status TEXT NOT NULL DEFAULT 'pending', priority
  INTEGER NOT NULL DEFAULT 2, agent_type TEXT NOT NULL DEFAULT 'codex', session_name TEXT,
  batch_id TEXT, dispatch_id TEXT REFERENCES dispatches (id), spawn_opts TEXT NOT NULL,
  max_retries INTEGER NOT NULL DEFAULT 3, retry_count INTEGER NOT NULL DEFAULT 0, error_msg TEXT,
  created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER);
INSERT INTO scheduler_jobs (id, dispatch_id, spawn_opts, created_at) VALUES ('id', 'dispatch-1',
  'spawn_opts', 1700000221);
CREATE INDEX idx_phase_actions_run ON phase_actions (run_id);
CREATE INDEX idx_phase_actions_phase ON phase_actions (run_id, phase);
CREATE INDEX idx_coord_active ON coordination_locks (scope, type) WHERE released_at IS NULL;
CREATE INDEX idx_coord_owner ON coordination_locks (owner) WHERE released_at IS NULL;
CREATE INDEX idx_coord_expires ON coordination_locks (expires_at) WHERE released_at IS NULL AND
  expires_at IS NOT NULL;
-- version 21
ALTER TABLE phase_events ADD COLUMN envelope_json TEXT;
ALTER TABLE dispatch_events ADD COLUMN envelope_json TEXT;
ALTER TABLE coordination_events ADD COLUMN envelope_json TEXT;
-- version 22
CREATE TABLE run_replay_inputs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL
  REFERENCES runs (id), kind TEXT NOT NULL, input_key TEXT, payload TEXT NOT NULL DEFAULT '{}',
  artifact_ref TEXT, event_source TEXT, event_id INTEGER, created_at INTEGER NOT NULL DEFAULT
  (unixepoch()));
INSERT INTO run_replay_inputs (run_id, kind, created_at) VALUES ('run00001', 'kind', 1700000232);
-- version 23
ALTER TABLE audit_log ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';
CREATE INDEX idx_audit_log_trace ON audit_log (trace_id) WHERE trace_id != '';
-- version 24
CREATE TABLE review_events (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, finding_id TEXT NOT
  NULL, agents_json TEXT NOT NULL, resolution TEXT NOT NULL, dismissal_reason TEXT,
  chosen_severity TEXT NOT NULL, impact TEXT NOT NULL, session_id TEXT, project_dir TEXT,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO review_events (run_id, finding_id, agents_json, resolution, chosen_severity, impact,
  created_at) VALUES ('run00001', 'finding_id', 'agents_json', 'resolution', 'chosen_severity',
  'impact', 1700000243);
-- version 25
CREATE TABLE landed_changes (id INTEGER PRIMARY KEY AUTOINCREMENT, commit_sha TEXT NOT NULL,
  project_dir TEXT NOT NULL, branch TEXT NOT NULL DEFAULT 'main', dispatch_id TEXT, run_id TEXT,
  bead_id TEXT, session_id TEXT, merge_intent_id INTEGER, landed_at INTEGER NOT NULL DEFAULT
  (unixepoch()), reverted_at INTEGER, reverted_by TEXT, files_changed INTEGER, insertions INTEGER,
  deletions INTEGER, UNIQUE (commit_sha, project_dir));
INSERT INTO landed_changes (commit_sha, project_dir, dispatch_id, run_id) VALUES ('commit_sha',
  'project_dir', 'dispatch-1', 'run00001');
-- version 26
CREATE TABLE sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, project_dir
  TEXT NOT NULL, agent_type TEXT NOT NULL DEFAULT 'claude-code', model TEXT, started_at INTEGER
  NOT NULL DEFAULT (unixepoch()), ended_at INTEGER, metadata TEXT, UNIQUE (session_id,
  project_dir));
INSERT INTO sessions (session_id, project_dir) VALUES ('session_id', 'project_dir');
CREATE TABLE session_attributions (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  project_dir TEXT NOT NULL, bead_id TEXT, run_id TEXT, phase TEXT, created_at INTEGER NOT NULL
  DEFAULT (unixepoch()));
INSERT INTO session_attributions (session_id, project_dir, run_id, created_at) VALUES
  ('session_id', 'project_dir', 'run00001', 1700000273);
-- version 27
CREATE TABLE routing_decisions (id INTEGER PRIMARY KEY AUTOINCREMENT, dispatch_id TEXT, run_id
  TEXT, session_id TEXT, bead_id TEXT, project_dir TEXT NOT NULL, phase TEXT, agent TEXT NOT NULL,
  category TEXT, selected_model TEXT NOT NULL, rule_matched TEXT NOT NULL, floor_applied INTEGER
  NOT NULL DEFAULT 0, floor_from TEXT, floor_to TEXT, candidates TEXT, excluded TEXT, policy_hash
  TEXT, override_id TEXT, complexity INTEGER, context_json TEXT, decided_at INTEGER NOT NULL
  DEFAULT (unixepoch()));
INSERT INTO routing_decisions (dispatch_id, run_id, project_dir, agent, selected_model,
  rule_matched) VALUES ('dispatch-1', 'run00001', 'project_dir', 'agent', 'selected_model',
  'rule_matched');
-- version 28
ALTER TABLE review_events ADD COLUMN event_type TEXT NOT NULL DEFAULT 'disagreement_resolved';
-- version 29
CREATE TABLE intent_events (id INTEGER PRIMARY KEY AUTOINCREMENT, intent_type TEXT NOT NULL,
  bead_id TEXT NOT NULL, idempotency_key TEXT NOT NULL, session_id TEXT NOT NULL, run_id TEXT,
  success INTEGER NOT NULL DEFAULT 0, error_detail TEXT, created_at INTEGER NOT NULL DEFAULT
  (unixepoch()));
INSERT INTO intent_events (intent_type, bead_id, idempotency_key, session_id, run_id, created_at)
  VALUES ('intent_type', 'bead_id', 'idempotency_key', 'session_id', 'run00001', 1700000303);
-- version 30
ALTER TABLE sessions ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cache_creation_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cache_read_tokens INTEGER NOT NULL DEFAULT 0;
-- version 31
ALTER TABLE lanes ADD COLUMN intent TEXT NOT NULL DEFAULT '';
-- version 35
CREATE TABLE authorizations (id TEXT PRIMARY KEY, op_type TEXT NOT NULL, target TEXT NOT NULL,
  agent_id TEXT NOT NULL CHECK (length(trim(agent_id)) > 0), bead_id TEXT, mode TEXT NOT NULL
  CHECK (mode IN ('auto', 'confirmed', 'blocked', 'force_auto')), policy_match TEXT, policy_hash
  TEXT, vetted_sha TEXT, vetting TEXT CHECK (vetting IS NULL OR json_valid(vetting)),
  cross_project_id TEXT, created_at INTEGER NOT NULL, sig_version INTEGER NOT NULL DEFAULT 0,
  signature BLOB, signed_at INTEGER);
INSERT INTO authorizations (id, op_type, target, agent_id, mode, vetting, created_at) VALUES
  ('id', 'op_type', 'target', 'agent_id', 'confirmed', '{"by":"tests"}', 1700000315);
CREATE TABLE authz_tokens (id TEXT PRIMARY KEY, op_type TEXT NOT NULL, target TEXT NOT NULL,
  agent_id TEXT NOT NULL CHECK (length(trim(agent_id)) > 0), bead_id TEXT, delegate_to TEXT,
  expires_at INTEGER NOT NULL, consumed_at INTEGER, revoked_at INTEGER, issued_by TEXT NOT NULL,
  parent_token TEXT REFERENCES authz_tokens (id) ON DELETE RESTRICT, root_token TEXT, depth
  INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0 AND depth <= 3), sig_version INTEGER NOT NULL
  DEFAULT 2, signature BLOB NOT NULL, created_at INTEGER NOT NULL);
INSERT INTO authz_tokens (id, op_type, target, agent_id, expires_at, issued_by, signature,
  created_at) VALUES ('id', 'op_type', 'target', 'agent_id', 1700000325, 'issued_by', x'0102ff',
  1700000334);
CREATE TABLE action_receipts (receipt_id TEXT PRIMARY KEY, timestamp TEXT NOT NULL, agent_id TEXT
  NOT NULL, model TEXT NOT NULL, tool_calls_json TEXT NOT NULL, parent_run_id TEXT, content_hash
  TEXT NOT NULL, schema_version INTEGER NOT NULL, signature TEXT NOT NULL, signature_alg TEXT NOT
  NULL, key_id TEXT NOT NULL, signed_at TEXT NOT NULL, payload_canonical BLOB NOT NULL,
  inserted_at INTEGER NOT NULL);
INSERT INTO action_receipts (receipt_id, timestamp, agent_id, model, tool_calls_json,
  content_hash, schema_version, signature, signature_alg, key_id, signed_at, payload_canonical,
  inserted_at) VALUES ('receipt_id', 'timestamp', 'agent_id', 'model', 'tool_calls_json',
  'content_hash', 6, 'signature', 'signature_alg', 'key_id', 'signed_at', x'0102ff', 1700000348);
CREATE INDEX authz_by_agent ON authorizations (agent_id, created_at DESC);
CREATE INDEX authz_unsigned ON authorizations (sig_version, signed_at) WHERE signature IS NULL AND
  sig_version >= 1;
CREATE TRIGGER action_receipts_no_delete BEFORE DELETE ON action_receipts BEGIN SELECT
  RAISE(ABORT, 'only added to'); END;
CREATE TRIGGER action_receipts_no_update BEFORE UPDATE ON action_receipts BEGIN SELECT
  RAISE(ABORT, 'only added to'); END;
-- version 37
CREATE TABLE feedback_idempotency (idempotency_key TEXT PRIMARY KEY, discovery_id TEXT NOT NULL,
  signal_type TEXT NOT NULL, signal_data TEXT NOT NULL, actor TEXT NOT NULL, signal_id INTEGER,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO feedback_idempotency (idempotency_key, discovery_id, signal_type, signal_data, actor,
  created_at) VALUES ('idempotency_key', 'discovery_id', 'signal_type', 'signal_data', 'actor',
  1700000355);
-- version 38
CREATE TABLE agency_events (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, agency_name TEXT
  NOT NULL, event_type TEXT NOT NULL, cycle_id TEXT NOT NULL, stage TEXT NOT NULL, context_json
  TEXT NOT NULL DEFAULT '{}', idempotency_key TEXT NOT NULL, project_dir TEXT, created_at INTEGER
  NOT NULL DEFAULT (unixepoch()), UNIQUE (agency_name, idempotency_key));
INSERT INTO agency_events (run_id, agency_name, event_type, cycle_id, stage, idempotency_key,
  created_at) VALUES ('run00001', 'agency_name', 'event_type', 'cycle_id', 'stage',
  'idempotency_key', 1700000365);
-- version 39
ALTER TABLE runs ADD COLUMN goal_id TEXT;
CREATE TABLE goals (id TEXT NOT NULL PRIMARY KEY, project_dir TEXT NOT NULL, title TEXT NOT NULL,
  charter_path TEXT, condition_text TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'open',
  complexity INTEGER NOT NULL DEFAULT 3, fence_gen INTEGER NOT NULL DEFAULT 0, closing_run_id
  TEXT, lease_owner TEXT, lease_expires_at INTEGER, verified_at INTEGER, reflected_at INTEGER,
  compounded_at INTEGER, successor_proposed_at INTEGER, successor_ref TEXT, last_run_advanced_at
  INTEGER, bead_id TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()), updated_at INTEGER NOT
  NULL DEFAULT (unixepoch()), amended_at INTEGER, closed_at INTEGER);
INSERT INTO goals (id, project_dir, title, created_at, updated_at) VALUES ('id', 'project_dir',
  'title', 1700000384, 1700000385);
CREATE INDEX idx_runs_goal ON runs (goal_id) WHERE goal_id IS NOT NULL;
CREATE INDEX idx_goals_live ON goals (status) WHERE status IN ('open','closing');
INSERT INTO runs (id, project_dir, goal, status, phase, created_at, updated_at, completed_at,
  phases, token_budget, budget_warn_pct, max_dispatches, gate_rules, goal_id)
  VALUES ('run00002', '/p', 'was done', 'completed', 'ship', 1700000001, 1700000002, 1700000003,
  '["plan","ship"]', 5000, NULL, 4, '{}', 'id');
