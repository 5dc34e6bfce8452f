-- Blanks around the name of a project and slashes at its end do not count. Projects that were
-- stored with them get the name that clients reach now. Two spellings of one name that both have
-- rows stay as they are: sessions, messages, plans and fences of both could not be told apart, and
-- their reservations may overlap. The data of past events keeps the old name.
CREATE TABLE project_names (
  old TEXT NOT NULL PRIMARY KEY,
  new TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO project_names (old, new)
  SELECT project,
    rtrim(ltrim(project, ' ' || char(9, 10, 11, 12, 13)), ' /' || char(9, 10, 11, 12, 13))
  FROM (SELECT project FROM events UNION SELECT project FROM agents
        UNION SELECT project FROM messages UNION SELECT project FROM mailboxes
        UNION SELECT project FROM thread_members UNION SELECT project FROM reservations
        UNION SELECT project FROM fences UNION SELECT project FROM plans
        UNION SELECT project FROM cuj_links UNION SELECT project FROM windows
        UNION SELECT project FROM pokes);
UPDATE project_names SET new = '/' WHERE new = '' AND instr(old, '/') > 0;
DELETE FROM project_names
  WHERE new IN (SELECT new FROM project_names GROUP BY new HAVING COUNT(*) > 1);
DELETE FROM project_names WHERE new = old;

UPDATE events SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE agents SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE messages SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE inbox SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE mailboxes SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE inbox_abroad SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE thread_members SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE reservations SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE fences SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE plans SET project = (SELECT new FROM project_names WHERE old = project),
    body = json_replace(body, '$.project', (SELECT new FROM project_names WHERE old = project))
  WHERE project IN (SELECT old FROM project_names);
UPDATE cuj_links SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE windows SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
UPDATE pokes SET project = (SELECT new FROM project_names WHERE old = project)
  WHERE project IN (SELECT old FROM project_names);
DROP TABLE project_names;
