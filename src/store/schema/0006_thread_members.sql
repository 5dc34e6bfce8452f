-- Threads get messages far more often than their members list them. An index that followed the
-- newest message of each thread was changed in four places by every send.
DROP INDEX thread_members_by_agent;
CREATE INDEX thread_members_of_agent ON thread_members (project, agent);
