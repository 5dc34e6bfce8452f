-- Addresses may be names. Of the agents that have one, in a project or in any, those seen last are
-- found without a look at the others.
DROP INDEX agents_by_name;
CREATE INDEX agents_by_name ON agents (name, project, last_seen) WHERE deregistered_at IS NULL;
