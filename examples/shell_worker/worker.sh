#!/bin/sh
# A Fairlead worker in shell, with curl and jq: one task at a time.
set -eu

url=${FAIRLEAD_URL:-http://127.0.0.1:8000}
auth=${FAIRLEAD_KEY:+Authorization: Bearer $FAIRLEAD_KEY}

# What this worker can do: reads the parameters, prints the result as JSON. If it fails, so has the task.
types='["shout", "sleep"]'
handle() { # task type
  case $1 in
    shout) jq '{text: (.text | ascii_upcase)}' ;;
    sleep) sleep "$(jq .seconds)" && echo '{"slept": true}' ;;
  esac
}

send() { # method, path, body: prints the answer. Returns 0: accepted, 1: refused, 2: worth a repetition
  answer=$(curl --silent --show-error --request "$1" --header 'Content-Type: application/json' \
    ${auth:+--header "$auth"} --data "$3" --write-out '\n%{http_code}' "$url$2") || return 2
  printf '%s\n' "$answer" | sed '$d'
  case ${answer##*[!0-9]} in
    2??) return 0 ;;
    408 | 429 | 5??) return 2 ;;
    *) return 1 ;;
  esac
}

insist() { # the same, repeated until it is accepted or refused: a gateway that restarts is away for a moment
  while :; do
    said=$(send "$@") && outcome=0 || outcome=$?
    [ "$outcome" = 2 ] || { printf '%s\n' "$said" && return "$outcome"; }
    echo "$2: trying again" >&2
    sleep 1
  done
}

register() {
  me=$(insist POST /internal/workers/register '{"name": "shell", "capacity": 1, "task_types": '"$types"'}') ||
    { echo "$me" >&2 && exit 1; }
  path=/internal/workers/$(echo "$me" | jq --raw-output .worker_id)
  pause=$(echo "$me" | jq '.heartbeat_seconds / 2')
}

heartbeats() { # task id: they renew the lease of this task only, until it is reported
  while sleep "$pause" && kill -0 $$; do # not without the worker
    send POST "$path/heartbeat" '{"current_load": 1, "task_ids": ["'"$1"'"]}' || true
  done
}

run() { # task
  id=$(printf '%s' "$1" | jq --raw-output .task_id)
  echo "runs $id"
  heartbeats "$id" > /dev/null &
  beating=$!
  if output=$(printf '%s' "$1" | jq .parameters | handle "$(printf '%s' "$1" | jq --raw-output .task_type)" 2>&1)
  then outcome='{status: "completed", result: ($output | try fromjson catch $output)}'
  else outcome='{status: "failed", error: {message: $output, retriable: false}}'
  fi
  insist POST "$path/result" "$(printf '%s' "$1" | jq --arg output "$output" "{task_id, fence} + $outcome")" > /dev/null ||
    echo "the result was refused: the task was cancelled, or another worker has it by now" >&2
  kill "$beating"
}

register
draining=false
trap 'draining=true' TERM INT
echo "worker ${path##*/} polls $url"

while [ "$draining" = false ]; do
  # a poll shows that the worker is alive
  if polled=$(send POST "$path/poll" '{"available_capacity": 1, "wait_seconds": 5}'); then
    task=$(printf '%s' "$polled" | jq --compact-output '.tasks[0] // empty')
    [ -z "$task" ] || run "$task"
    [ "$(printf '%s' "$polled" | jq .draining)" = false ] || draining=true # an operator asked for it
  elif [ $? = 1 ]; then
    register # it was silent for too long
  else
    sleep 1 || true
  fi
done
send DELETE "$path" '{}' > /dev/null || true
