#!/bin/sh
# A Fairlead worker in shell: one task at a time, with curl and jq. The task type `shout` turns text into capitals.
set -eu

url=${FAIRLEAD_URL:-http://127.0.0.1:8000}
auth=${FAIRLEAD_KEY:+Authorization: Bearer $FAIRLEAD_KEY}

post() { # path, body
  curl --silent --show-error --fail-with-body --header 'Content-Type: application/json' ${auth:+--header "$auth"} --data "$2" "$url$1"
}

worker=$(post /internal/workers/register '{"name": "shell", "capacity": 1, "task_types": ["shout"]}' | jq --raw-output .worker_id)
path=/internal/workers/$worker
draining=
trap 'draining=yes' TERM INT
echo "worker $worker polls $url"

while [ -z "$draining" ]; do
  # the poll itself shows that the worker is alive; a long task would also need a heartbeat beside it
  task=$(post "$path/poll" '{"available_capacity": 1, "wait_seconds": 5}' | jq --compact-output '.tasks[0] // empty') || { sleep 1; continue; }
  [ -n "$task" ] || continue
  report=$(printf '%s' "$task" | jq --compact-output '{task_id, fence, status: "completed", result: {text: (.parameters.text | ascii_upcase)}}')
  post "$path/result" "$report" > /dev/null || echo "result refused" >&2
done
