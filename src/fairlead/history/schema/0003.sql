-- The limits that the steps of jobs have needed, by which jobs are found. Of earlier jobs they are known by their steps.

CREATE TABLE job_limits (
  namespace INTEGER NOT NULL,
  name TEXT NOT NULL,
  place BIGINT NOT NULL,
  PRIMARY KEY (namespace, name, place)
);
INSERT INTO job_limits (namespace, name, place)
SELECT DISTINCT jobs.namespace, task_limits.name, jobs.place
FROM task_limits
JOIN tasks ON tasks.place = task_limits.place
JOIN jobs ON jobs.id = tasks.job_id AND jobs.namespace = tasks.namespace;
