"""Every fault that is planted in a busy namespace is found, and named."""

import pytest

from fairlead.store.connection import Connection
from tests.saved import Saved
from tests.store.busy import BOTH, DONE, HIGH, NOW, STOPPED, Command, event, look, tamper

TPU, INSIDE = "1n:echo;tpu|", "1n:echo;tpu|inner=1,outer=1"
NOBODYS, LANE = "1n:1", "1n:2"  # of tasks that need a tpu, which no worker has; of the others
GPU_LOT, CPU_LOT, API_LOT = f"gpu=1@{LANE}", f"cpu=3@{LANE}", f"api=1@{LANE}"
FAR = 9_000_000_000_000

#: The manual edits, the invariants they break, and words that the report must contain.
FAULTS: dict[str, tuple[list[Command], set[str], list[str]]] = {
    "a ticket is lost": ([("ZREM", f"queue:{TPU}", "{second}second")], {"I1", "C1"}, ["second", TPU]),
    "a ticket of a running task": (
        [("ZADD", f"queue:{TPU}", FAR, "{high}high")],
        {"I1", "C1"},
        ["high", TPU],
    ),
    "a ticket with another tag": (
        [("ZADD", f"queue:{TPU}", FAR, "{second}second")],
        {"I1", "C1"},
        ["second"],
    ),
    "a ticket of nobody": ([("ZADD", f"queue:{TPU}", FAR, "{first}ghost")], {"I1", "C1"}, ["no task ghost"]),
    "a task without age": ([("ZREM", "age:1n", "{second}second")], {"I1", "C1"}, ["second", "age:1n"]),
    "a task with another arrival": (
        [("ZADD", "age:1n", FAR, "{second}second")],
        {"I1"},
        ["second", "age:1n"],
    ),
    "a task in two places": ([("ZADD", "age:2n", FAR, "{second}second")], {"I1", "C1"}, ["second", "age:2n"]),
    "a delay without end": ([("ZREM", "delayed:1", "{later}later")], {"I1", "C1"}, ["later", "delayed:1"]),
    "a queued task is delayed too": (
        [("ZADD", "delayed:1", FAR, "{second}second")],
        {"I1", "C1"},
        ["second is queued"],
    ),
    "a delayed task of another priority": (
        [("ZREM", "delayed:1", "{later}later"), ("ZADD", "delayed:2", FAR, "{later}later")],
        {"I1"},
        ["later is delayed", "delayed:2"],
    ),
    "a patience without end": ([("ZREM", "waits", "patient")], {"I1"}, ["patient", "waits"]),
    "a patience of a running task": ([("ZADD", "waits", FAR, "high")], {"I1"}, ["high is executing"]),
    "an unknown state": ([("HSET", "task:high", "state", "odd")], {"I1", "I2", "I9"}, ["high", "'odd'"]),
    "a stop without a cancel": ([("HSET", "task:high", "stopping", 1)], {"I1"}, ["high", "asked to stop"]),
    "a task is lost": (
        [("DEL", "task:later"), ("ZREM", "delayed:1", "{later}later")],
        {"I1", "C1"},
        ["later is lost"],
    ),
    "a dead task is not listed": ([("ZREM", "dead", "broken")], {"I1"}, ["broken", "dead"]),
    "a dead task is not listed for its tenant": (
        [("ZREM", "deadof:acme", "broken")],
        {"I1"},
        ["broken", "deadof:acme"],
    ),
    "a dead task is listed for another tenant": (
        [("ZADD", "deadof:other", NOW - 1, "broken")],
        {"I1"},
        ["broken", "deadof:other"],
    ),
    "a completed task is listed as dead for a tenant": (
        [("ZADD", "deadof:acme", 1, "done")],
        {"I1"},
        ["done", "deadof:acme"],
    ),
    "a completed task is listed as dead": ([("ZADD", "dead", 1, "done")], {"I1"}, ["done", "dead"]),
    "a completed task is not listed": ([("DEL", "finished")], {"R1"}, ["task:done", "finished_count is 1"]),
    "a running task is listed as ended": ([("ZADD", "finished", FAR, "1:task:high")], {"R1"}, ["task:high"]),
    "a task is not in the list of all": ([("XDEL", "tasks", 2)], {"L1"}, ["task done has number 2"]),
    "a task is in the list of all a second time": (
        [("XADD", "tasks", FAR, "id", "done"), ("HSET", "meta", "made", FAR)],
        {"L1"},
        ["task done a second time", str(FAR)],
    ),
    "a number that was never given": (
        [("XADD", "jobs", FAR, "id", "ghost")],
        {"L1"},
        [f"jobs has number {FAR}"],
    ),
    "what has ended is counted wrongly": (
        [("HINCRBY", "meta", "finished_bytes", 1)],
        {"R1"},
        ["finished_bytes is"],
    ),
    "a running task without lease": ([("ZREM", "leases", "wide")], {"I2"}, ["wide", "leases"]),
    "a lease with another end": ([("ZADD", "leases", FAR, "wide")], {"I2"}, ["wide", "leases"]),
    "a lease of a queued task": ([("ZADD", "leases", FAR, "second")], {"I2"}, ["second is queued"]),
    "a stopped task without lease": ([("ZREM", "leases", "stopped")], {"I2"}, ["stopped is cancelled"]),
    "a task of two workers": ([("ZADD", "running:idler", 1, "wide")], {"I2"}, ["wide", "running:idler"]),
    "a task of no worker": ([("ZREM", "running:w", "wide")], {"I2"}, ["wide", "running:w"]),
    "a running task counted as high": ([("ZADD", "running:w", 0, "wide")], {"I2"}, ["wide", "running:w"]),
    "a bare lease without record": ([("DEL", "lease:bare")], {"I2", "I3"}, ["no lease:bare", "limit disk"]),
    "a bare lease without end": ([("ZREM", "leases", "lease:bare")], {"I2"}, ["lease:bare"]),
    "units in use of nobody": ([("HINCRBY", "limit:disk", "used", -1)], {"I3"}, ["limit disk"]),
    "units held by nobody": (
        [("HSET", "holders:disk", "ghost", 1), ("HINCRBY", "limit:disk", "used", 1)],
        {"I3"},
        ["limit disk", "ghost"],
    ),
    "a lease with more units": (
        [("HSET", "holders:cpu", "wide", 3), ("HINCRBY", "limit:cpu", "used", 1)],
        {"I3", "S4"},  # and the lot shown has no room
        ["limit cpu", "held by wide"],
    ),
    "a limit without name": ([("ZREM", "limits", "cpu")], {"I3"}, ["limit cpu"]),
    "a name without limit": ([("ZADD", "limits", 0, "nowhere")], {"I3"}, ["limit nowhere"]),
    "a limit that nobody defined": (
        [("ZADD", "limits", 0, "odd"), ("HSET", "limit:odd", "used", 0)],
        {"I3"},
        ["limit odd"],
    ),
    "a lease with a part of its units": (
        [("HDEL", "holders:lone", "single"), ("HSET", "limit:lone", "used", 0)],
        {"I4"},
        ["single", "limit lone"],
    ),
    "a bare lease with no units": (
        [("HDEL", "holders:disk", "lease:bare"), ("HSET", "limit:disk", "used", 0)],
        {"I4"},
        ["lease:bare", "limit disk"],
    ),
    "a fence from nowhere": (
        [("HSET", "meta", "fence", HIGH + 5)],
        {"I5"},
        [f"stopped has fence {STOPPED}", f"newest ever given is {HIGH + 5}"],
    ),
    "a fence of two leases": (
        [("HSET", "lease:bare", "fence", HIGH)],
        {"I5"},
        ["lease:bare", f"fence {HIGH}"],
    ),
    "a fence that falls": (
        [
            event("high", "release", "executing", "queued", HIGH - 1),
            event("high", "claim", "queued", "executing", HIGH),
        ],
        {"I5"},
        ["high", f"fence {HIGH - 1} after {HIGH}"],
    ),
    "a claim with the fence before": (
        [
            event("high", "release", "executing", "queued", HIGH),
            event("high", "claim", "queued", "executing", HIGH),
        ],
        {"I5"},
        ["high", "claim", f"fence {HIGH} after {HIGH}"],
    ),
    "a task completed twice": ([event("done", "complete", "executing", "completed", DONE)], {"I6"}, ["done"]),
    "a submit after the end": (
        [
            event("stopped", "submit", "", "queued", 0),
            event("stopped", "cancel", "queued", "cancelled", STOPPED),
        ],
        {"I6"},
        ["stopped", "submitted again"],
    ),
    "a result of another fence": ([("HSET", "task:done", "reported", 7)], {"I7"}, ["done", "fence 7"]),
    "a result of another fence than its event": (
        [("HSET", "task:done", "reported", 2, "fence", 2)],
        {"I5", "I7"},
        [f"done: its complete event has fence {DONE}"],
    ),
    "a key for two tasks": ([("SET", "idempotency:k", "d a b", "KEEPTTL")], {"I8"}, ["key k", "'d a b'"]),
    "a key for no task": (
        [("SET", "idempotency:k", "d odd", "KEEPTTL"), ("HSET", "task:odd", "type", "echo")],
        {"I1", "I8"},
        ["key k names odd"],
    ),
    "a jump": ([event("second", "complete", "queued", "completed", 0)], {"I9"}, ["second", "no transition"]),
    "a gap": (
        [event("high", "claim", "queued", "executing", HIGH + 99)],
        {"I5", "I9"},
        ["high", "from queued"],
    ),
    "another state than in the events": (
        [("HSET", "task:broken", "state", "dead_letter")],
        {"I9"},
        ["broken"],
    ),
    "submitted while it waits": ([event("second", "submit", "", "queued", 0)], {"I6", "I9"}, ["second"]),
    "more in use than allowed": ([("HSET", "limit:lone", "limit", 0)], {"S1"}, ["limit lone"]),
    "a head out of order": ([("ZADD", f"heads:{NOBODYS}", FAR, "{first}s" + TPU)], {"S3"}, [TPU]),
    "a head that is not the first": (
        [("HSET", "home", TPU, "{second}h" + NOBODYS), ("ZREM", f"heads:{NOBODYS}", "{first}s" + TPU)],
        {"S3", "S4"},
        [TPU, "first"],
    ),
    "a marker that is not of the first": (
        [("HSET", "markers", CPU_LOT, "{second}"), ("ZREM", f"heads:{LANE}", "{wider}m" + CPU_LOT)],
        {"S3", "S4"},
        [CPU_LOT],
    ),
    "a sub-queue without a position": ([("HDEL", "home", TPU)], {"S4", "S10"}, [TPU, "no position"]),
    "a hidden sub-queue": ([("ZREM", f"heads:{NOBODYS}", "{first}s" + TPU)], {"S4"}, [TPU]),
    "a hidden lot": ([("ZREM", f"heads:{LANE}", "{wider}m" + CPU_LOT)], {"S4"}, [CPU_LOT]),
    "a parked sub-queue in no lot": (
        [("DEL", f"parked:{GPU_LOT}"), ("ZREM", "lots:gpu", GPU_LOT)],
        {"S4"},
        [f"parked:{GPU_LOT}"],
    ),
    "a lot that its limit forgot": ([("ZREM", "lots:gpu", GPU_LOT)], {"S4"}, ["lots:gpu"]),
    "room without marker": (
        [("HDEL", "markers", CPU_LOT), ("ZREM", f"heads:{LANE}", "{wider}m" + CPU_LOT)],
        {"S4"},
        [CPU_LOT, "room for 3"],
    ),
    "a marker without room": (
        [
            ("HSET", "markers", GPU_LOT, "{draws2}"),
            ("ZADD", f"heads:{LANE}", "{draws2_tag}", "{draws2}m" + GPU_LOT),
        ],
        {"S4"},
        [GPU_LOT, "room for -1"],
    ),
    "a marker at a paused limit": (
        [
            ("HSET", "markers", f"shut=1@{LANE}", "{closed}"),
            ("ZADD", f"heads:{LANE}", "{closed_tag}", "{closed}m" + f"shut=1@{LANE}"),
        ],
        {"S4"},
        ["shut", "room for 0"],
    ),
    "a rate that never refills": ([("ZREM", "refills", API_LOT)], {"S4"}, [API_LOT, "no refill"]),
    "a rate that refills late": ([("ZADD", "refills", FAR, API_LOT)], {"S4"}, [API_LOT, str(FAR)]),
    "a refill of a rate that is paused": (
        [("HSET", "limit:api", "paused", 1)],
        {"S10"},
        [f"refills has lot {API_LOT}"],
    ),
    "a lot at a limit that is not there": (
        [("DEL", "limit:gpu")],
        {"I3", "K3", "S10"},
        [f"lot {GPU_LOT} is parked"],
    ),
    "a late alarm": ([("HSET", "meta", "alarm", FAR)], {"S4"}, ["alarm", "due at"]),
    "no alarm": ([("HDEL", "meta", "alarm")], {"S4"}, ["alarm"]),
    "an idle worker without record": ([("DEL", "worker:idler")], {"S4"}, ["worker idler"]),
    "an idle worker that nobody wakes": ([("DEL", "idle")], {"S4"}, ["line 2o counts 0", "there are 1"]),
    "an idle worker in no line": ([("HSET", "worker:w", "idle", "odd")], {"S4"}, ["worker w"]),
    "more than the capacity": ([("HSET", "worker:w", "capacity", 6)], {"S8", "T1"}, ["worker w", "6 tasks"]),
    "more than the reserve leaves": ([("HSET", "worker:w", "reserve", 4)], {"S8"}, ["worker w", "base high"]),
    "a worker that idles beside work": (
        [
            ("HSET", "worker:w", "idle", "1o"),
            ("HSET", "idle", "1o", 1),
            ("HINCRBY", "meta", "idle_workers", 1),
            ("ZADD", "idlers:1o", NOW, "w"),
        ],
        {"S4"},
        ["1n:echo;|cpu=3 can start", "idle"],
    ),
    "a call that was never answered": (
        [
            ("HSET", "worker:w", "idle", "1o", "called", NOW - 5_001),
            ("HSET", "idle", "1o", 1),
            ("HINCRBY", "meta", "idle_workers", 1),
            ("ZADD", "idlers:1o", NOW, "w"),
        ],
        {"S4"},
        ["1n:echo;|cpu=3 can start", "idle"],
    ),
    "a profile with a worker too many": (
        [("HINCRBY", "profiles", "n:1", 1)],
        {"S10"},
        ["profile 1 counts 2 workers, it has 1"],
    ),
    "a worker listed with another profile": (
        [("HSET", "listed", "w", 2)],
        {"S10"},
        ["worker w has profile 1, but is listed with 2", "profile 2 counts 1 workers, it has 2"],
    ),
    "a worker that is not listed": (
        [("HDEL", "listed", "w"), ("HDEL", "profiles", "n:1")],
        {"S10"},
        ["worker w has profile 1, but is listed with None"],
    ),
    "an audience without a profile that serves its routes": (
        [("HSET", "audiences", 2, "")],
        {"S10"},
        ["route echo; is seen by profiles [], but served by ['1']", "route echo;gpu"],
    ),
    "an audience with a profile that does not": (
        [("HSET", "audiences", 1, "2")],
        {"S4", "S10"},  # and that one has an idle worker
        ["route echo;tpu is seen by profiles ['2'], but served by []"],
    ),
    "a route of another audience": (
        [("HSET", "routes", "echo;tpu", 2)],
        {"S10"},
        ["route echo;tpu is seen by profiles ['1']", f"{TPU} is in lane {NOBODYS}"],
    ),
    "a place that counts too many": ([("HINCRBY", "meta", "queued_1n", 1)], {"C1"}, ["11 tasks in 1n"]),
    "a task without order": ([("ZREM", "order:1n", "{second}second")], {"C1"}, ["order:1n"]),
    "a task in another order": ([("ZADD", "order:1n", FAR, "{second}second")], {"C1"}, ["order:1n"]),
    "a type that counts too many": (
        [("HINCRBY", "kinds:=", "echo;tpu", 1)],
        {"C1"},
        ["kinds:= counts 5 tasks of 'echo;tpu', there are 4"],
    ),
    "a type that is not counted": (
        [("DEL", "kinds:=ä")],
        {"C1"},
        ["kinds:=ä counts 0 tasks of 'echo;tpu', there are 1"],
    ),
    "a type of nobody": ([("HSET", "kinds:=eve", "odd;", 0)], {"C1"}, ["kinds:=eve", "'odd;'"]),
    "a limit that counts too many": (
        [("HINCRBY", "limit:gpu", "waiting", 1)],
        {"C1"},
        ["waiting of limits counts 4 tasks of 'gpu', there are 3"],
    ),
    "a limit that counts none": (
        [("HDEL", "limit:gpu", "waiting")],
        {"C1"},
        ["waiting of limits counts 0 tasks of 'gpu', there are 3"],
    ),
    "a limit that counts what is not delayed": (
        [("HSET", "limit:gpu", "delayed", 1)],
        {"C1"},
        ["delayed of limits counts 1 tasks of 'gpu', there are 0"],
    ),
    "a limit of a submit that nothing needs": (
        [("ZADD", "limits", 0, "left"), ("HSET", "limit:left", "kind", "slots", "limit", 1, "group", 1)],
        {"C1"},
        ["limit left"],
    ),
    "a user with a count too high": (
        [("HINCRBY", "waiting", "0::ann", 1)],
        {"C1"},
        ["counts 2 tasks of '0::ann', there are 1"],
    ),
    "a user without a count": (
        [("HDEL", "waiting", "2:ä:ann")],
        {"C1"},
        ["counts 0 tasks of '2:ä:ann', there are 1"],
    ),
    "a count of nobody": ([("HSET", "waiting", "0::eve", 0)], {"C1"}, ["0::eve"]),
    "a position of nobody": ([("HSET", "home", "0n:odd;|", "{first}h0n:1")], {"S10"}, ["0n:odd;|"]),
    "a malformed position": ([("HSET", "home", TPU, "{first}x")], {"S4", "S10"}, [TPU, "no position"]),
    "an unknown lot": ([("HSET", "home", TPU, "{first}podd")], {"S4", "S10"}, [TPU, "odd"]),
    "a sub-queue in the lane of another place": (
        [
            ("HSET", "home", TPU, "{first}h0n:1"),
            ("ZREM", f"heads:{NOBODYS}", "{first}s" + TPU),
            ("ZADD", "heads:0n:1", "{first_tag}", "{first}s" + TPU),
        ],
        {"S10"},
        [f"{TPU} is in lane 0n:1"],
    ),
    "a sub-queue that its route forgot": ([("ZREM", "subs:echo;tpu", TPU)], {"S4"}, ["subs:echo;tpu", TPU]),
    "a sub-queue of nobody": ([("ZADD", "subs:echo;", 0, "0n:echo;|")], {"S10"}, ["subs:echo;", "0n:echo;|"]),
    "a second home": ([("ZADD", f"heads:{LANE}", 1, "{draws2}s1n:echo;|gpu=1")], {"S10"}, ["gpu=1"]),
    "a lot it does not wait for": (
        [
            ("HSET", "home", "1n:echo;|gpu=1", "{draws2}p" + f"disk=1@{LANE}"),
            ("DEL", f"parked:{GPU_LOT}"),
            ("ZREM", "lots:gpu", GPU_LOT),
            ("ZADD", f"parked:disk=1@{LANE}", "{draws2_tag}", "{draws2}1n:echo;|gpu=1"),
            ("ZADD", "lots:disk", 0, f"disk=1@{LANE}"),
        ],
        {"S10"},
        ["1n:echo;|gpu=1", "does not wait for that"],
    ),
    "an empty lot": ([("ZADD", "lots:gpu", 0, f"gpu=9@{LANE}")], {"S10"}, ["gpu=9"]),
    "a marker of nobody": ([("HSET", "markers", f"gpu=9@{LANE}", "{first}")], {"S10"}, ["gpu=9"]),
    "a refill of nobody": ([("ZADD", "refills", FAR, f"api=9@{LANE}")], {"S10"}, ["api=9"]),
    "a lot of no limit": (
        [("ZADD", f"parked:odd=1@{LANE}", 1, "{first}odd"), ("ZADD", "lots:odd", 0, f"odd=1@{LANE}")],
        {"S10"},
        ["odd=1"],
    ),
    "no patience": ([("ZREM", "patience", BOTH)], {"S10"}, [BOTH, "watched nowhere"]),
    "a patience before its head": ([("ZADD", "patience", 1, BOTH)], {"S10"}, [BOTH, "before its head came"]),
    "a patience of nobody": ([("ZADD", "patience", 1, "0n:odd;|a=1,b=1")], {"S10"}, ["0n:odd;|a=1,b=1"]),
    "limits that are nested, and nobody knows": ([("DEL", "nested")], {"S10"}, [INSIDE, "watched nowhere"]),
    "limits that are nested and overlap": (
        [("ZADD", "patience", FAR, INSIDE)],
        {"S10"},
        [INSIDE, "watched twice"],
    ),
    "nested limits that are never looked at again": (
        [("ZADD", "nested", FAR, INSIDE)],
        {"S10"},
        [INSIDE, "a change of limits that never was"],
    ),
    "nested limits of nobody": ([("ZADD", "nested", 0, "0n:odd;|a=1,b=1")], {"S10"}, ["0n:odd;|a=1,b=1"]),
    "a hold of nobody": ([("HDEL", "holds", BOTH)], {"S10"}, [BOTH, "limit gpu", "limit disk"]),
    "a hold on nothing": ([("HSET", "holds", TPU, "1 first")], {"S10"}, [TPU, "no limit"]),
    "a hold for somebody else": ([("HSET", "holds", BOTH, "1 first")], {"S10"}, [BOTH, "first"]),
    "a hold of other units": ([("HSET", "limit:disk", "hold_units", 2)], {"S10"}, ["limit disk", BOTH]),
    "a hold that ended in the books alone": (
        [
            ("DEL", "holds"),
            ("HDEL", "limit:gpu", "hold", "hold_units"),
            ("HDEL", "limit:disk", "hold", "hold_units"),
        ],
        {"S10"},
        [BOTH, "not there"],
    ),
    "a stranger": ([("SET", "odd", "1")], {"K1"}, ["key odd"]),
    "a key with a name too many": ([("SET", "meta:odd", "1")], {"K1"}, ["key meta:odd"]),
    "a key of another type": ([("SET", "paused", "1")], {"K1"}, ["key paused", "hash"]),
    "no meta": ([("DEL", "meta")], {"K1"}, ["key meta"]),
    "an ended task that never expires": ([("PERSIST", "task:done")], {"K2"}, ["done is completed"]),
    "a queued task that runs out": ([("PEXPIRE", "task:second", 90_000)], {"K2"}, ["second is queued"]),
    "output of an ended task that never expires": (
        [("RPUSH", "output:done", "[1,1,2]")],
        {"K2"},
        ["done is completed", "its output never"],
    ),
    "output of a running task that runs out": (
        [("RPUSH", "output:high", "[1,1,2]"), ("PEXPIRE", "output:high", 90_000)],
        {"K2"},
        ["high is executing", "its output runs out"],
    ),
    "output of no task": ([("RPUSH", "output:ghost", "[1,1,2]")], {"K2"}, ["no task ghost"]),
    "a worker that never expires": ([("PERSIST", "worker:w")], {"K2"}, ["worker:w"]),
    "a caretaker that never expires": ([("SET", "caretaker", "me")], {"K2"}, ["caretaker never runs out"]),
    "a declaration that cannot be read": (
        [("HSET", "types", "file:echo", "{{")],
        {"K3"},
        ["file:echo", "cannot be read"],
    ),
    "a declaration with a limit nobody defined": (
        [("HSET", "types", "file:echo", '{{"limits":"cpu=1,odd=1"}}')],
        {"K3"},
        ["file:echo", "limit odd"],
    ),
    "a task that waits is not listed for its tenant": (
        [("ZREM", "presence:1n:ä", "first")],
        {"C1"},
        ["first is queued", "presence:1n:ä"],
    ),
    "a task that has ended is listed for its tenant": (
        [("ZADD", "presence:r:acme", 1, "broken")],
        {"C1"},
        ["presence:r:acme has broken"],
    ),
    "a task is listed for another tenant": (
        [("ZADD", "presence:1n:acme", 1, "first")],
        {"C1"},
        ["presence:1n:acme has first"],
    ),
    "a task that never was is listed for a tenant": (
        [("ZADD", "presence:d:acme", 1, "ghost")],
        {"C1"},
        ["presence:d:acme has ghost"],
    ),
    "a shared limit that is not listed": (
        [("HSET", "limit:lone", "shared", 1)],
        {"K5"},
        ["limit lone is not among"],
    ),
    "a limit listed as shared that is not": (
        [("ZADD", "shared", 0, "lone")],
        {"K5"},
        ["limit lone is listed"],
    ),
    "a declaration that is never forgotten": (
        [("DEL", "declarations")],
        {"K7"},
        ["types:draw is not listed"],
    ),
    "a declaration of nothing": (
        [("ZADD", "declarations", NOW, "pipelines:none")],
        {"K7"},
        ["pipelines:none is listed, but not declared"],
    ),
    "a limit of one tenant that is shared": (
        [
            ("HSET", "limit:acme/lone", "kind", "slots", "limit", 1, "shared", 1),
            ("ZADD", "limits", 0, "acme/lone"),
            ("ZADD", "shared", 0, "acme/lone"),
        ],
        {"K5"},
        ["limit acme/lone is one tenant's own"],
    ),
    "a key that is not listed": ([("ZREM", "keys", "keyright")], {"K4"}, ["keyright", "does not have it"]),
    "a key listed for another time": ([("ZADD", "keys", FAR, "keyended")], {"K4"}, ["keyended", str(FAR)]),
    "a key without record": ([("DEL", "key:keyright")], {"K4"}, ["keyright", "no record"]),
    "an audit that was taken out": ([("DEL", "audit")], {"A1"}, ["entries after 0 were removed"]),
    "an audit continued by hand": (
        [("XADD", "audit", "*", "entry", "odd", "hash", "odd")],
        {"A1"},
        ["the entry after 1 cannot be read"],
    ),
    "an act that broke half-way": (
        [("HSET", "meta", "unfinished", b"\x92\xa1a\xa1b"), ("DEL", "leases"), ("DEL", "home")],
        {"W1"},
        ["its remaining 2 writes"],
    ),
}


@pytest.mark.parametrize("invariant", sorted({min(invariants) for _, invariants, _ in FAULTS.values()}))
async def test_every_planted_fault_is_named(busy: Connection, invariant: str) -> None:
    healthy = await Saved.of(busy)
    for fault, (commands, invariants, words) in FAULTS.items():
        if min(invariants) == invariant:
            await healthy.put_back()
            await tamper(busy, *commands)
            breaches = await look(busy)
            assert {breach.invariant for breach in breaches} == invariants, (fault, breaches)
            report = "\n".join(breach.sentence for breach in breaches)
            assert all(word in report for word in words), (fault, report)
    await healthy.put_back()
    assert await look(busy) == []
