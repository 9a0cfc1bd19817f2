"""The process that makes forecasts: `python -m fairlead.api.estimator_process PARENT FD`."""

from fairlead.api.side_orders import run_orders
from fairlead.api.side_process import Order
from fairlead.errors import FairleadError, StoreUnavailable
from fairlead.log.events import EventLog
from fairlead.log.tracebacks import traceback_of
from fairlead.upkeep.estimator import Estimator
from fairlead.worker.pipe import MessagePipe

log = EventLog("fairlead.upkeep")


class EstimatorOrder(Order):
    who: str  # the caretaker it works for


async def estimate(order: EstimatorOrder, pipe: MessagePipe) -> None:
    """Until another caretaker is elected, or something is wrong with the namespace."""
    store = order.connect()
    try:
        await store.epochs.join()
        await Estimator(store, order.who).run()
    except StoreUnavailable:
        pass  # the server reports it; it is tried again until the store is back
    except FairleadError as problem:
        log.warning("estimates_wait", code=problem.code, problem=str(problem), namespace=order.namespace)
    except Exception as problem:
        log.error("estimates_failed", traceback=traceback_of(problem), namespace=order.namespace)
    finally:
        await store.close()


def main() -> None:
    run_orders(EstimatorOrder, estimate)


if __name__ == "__main__":
    main()
