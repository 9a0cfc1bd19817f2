"""The process that records the history: `python -m fairlead.api.recorder_process PARENT FD`."""

from fairlead.api.side_orders import run_orders
from fairlead.api.side_process import Order
from fairlead.errors import FairleadError
from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.history.pruning import Keep
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.upkeep.recording import IDLE_SECONDS, PROMPT_SECONDS, Recording
from fairlead.worker.pipe import MessagePipe

log = EventLog("fairlead.history")


class RecorderOrder(Order):
    who: str  # the caretaker it works for
    history: str  # the URL of the database
    keep_days: int
    max_bytes: int
    ledger: bool  # clients wait until their submits are recorded


async def record(order: RecorderOrder, pipe: MessagePipe) -> None:
    """Until cancelled, or something unexpected is wrong."""
    store = order.connect()
    try:
        history = History(open_database(order.history, durable=order.ledger), order.namespace)
        try:
            keep = Keep(order.keep_days, order.max_bytes)

            def tell(problem: str) -> None:
                pipe.send([order.namespace, problem])

            pace = PROMPT_SECONDS if order.ledger else IDLE_SECONDS
            # one that was killed is replaced at once, because it has the same name
            made = Recording(store, history, idle_seconds=pace, tell=tell, keep=keep, name=order.who)
            await made.run()
        finally:
            await history.close()
    except FairleadError as problem:
        log.error("recorder_failed", code=problem.code, problem=str(problem), namespace=order.namespace)
    except Exception as problem:
        log.error("recorder_failed", traceback=traceback_of(problem), namespace=order.namespace)
    finally:
        await store.close()


def main() -> None:
    run_orders(RecorderOrder, record)


if __name__ == "__main__":
    main()
