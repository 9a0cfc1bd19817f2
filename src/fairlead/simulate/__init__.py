"""The scheduling rule, run forward on a virtual clock: what starts when, if nothing else happens.

It makes the same choices as `rules/`, which looks at everything; here nothing is looked at twice in vain.
A start costs some microseconds, whatever is blocked. All times are whole milliseconds.

    kind = Kind.of("draw", {"gpu"}, {"image_gen": 1}, policy.tiers)         # one object for all like it
    task = Task(0, kind, Priority.LOW, account="acme/ann", arrival=..., duration=2_000)
    snapshot = Snapshot(now, policy, workers, limits, waiting=[Waiting(task, Place.LOW, tag, seq, stride)],
                        running=[Running(left=500, needs=kind.needs, worker="w1")], ledgers=..., ...)
    simulation = Simulation(snapshot)                          # O(waiting tasks): once for a snapshot
    for number, instant in simulation.starts(most=2_000):      # lazy; `until` bounds it in time
        ...

- **Input** is in `values.py`: `Kind`, `Task`, `Waiting`, `Running`, `Snapshot`. The tasks that wait have the
  numbers 0 to n-1; `starts` yields these numbers. Everything else of a task (its id, say) stays outside.
- **Replicas.** `simulation.fork(duration=..., left=...)` begins where the simulation began, for the price of
  what it then touches, not of all that waits. Keep the first one unused, and run the forks in its thread.
  `duration(task)` draws how long a run takes, `left(running)` how much longer a run of the snapshot does.
  A promotion within the horizon costs about as much as a start: bound the horizon in time as well.
- **Arrivals**: an iterable of tasks in the order of their arrivals, read as time passes, with the numbers
  from n on. It may be endless if `starts` is bounded.
- **Ends**: `ended(number, instant)` is called for each run that ends (for those of the snapshot with
  `Running.number`), and may call `simulation.submit(task)` for work that follows, such as the next step of a
  job; `Task.reserved` has the positions that a job has reserved. Without arrivals and without `ended` nothing
  is learnt about what accounts cost, because nobody would use it.
- **Equal to the rules** are the order with fair shares, streaks and the budget, ageing, slots and rates, the
  reserve, capabilities and task types, paused types and limits, holds, and elastic tasks.

What differs from the store:

- Ageing, ends and refills happen exactly at their instant; the store does a bounded part of it in each act.
- If several workers could start a task, the first in the list does.
- At each instant at which something happens, holds are reviewed and made once, if a worker has a slot. They
  also end at the exact instant.
- A run that must become shorter gives its units back at once, and workers answer at once.
- Nothing fails, is retried, cancelled, delayed, or gives up waiting; interactive tasks and waiting acquires
  are not simulated (their leases can be: as `Running`). Timeouts other than those of tiers do not end runs.
- A step whose job has reserved nothing in a place is charged alone when it is promoted to it.
"""
