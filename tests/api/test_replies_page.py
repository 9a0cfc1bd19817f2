"""The page of events: the replies of a socket that submits have exactly the fields that it lists."""

from fairlead.shapes.task import CancelAnswer, SubmitAnswer
from tests.api.listening import receive_one, say, socket
from tests.api.requests import NO_TASK
from tests.api.serving import Gateway
from tests.store.test_events_page import fields_of


async def test_the_replies_of_a_socket_that_submits(gateway: Gateway) -> None:
    async with socket(gateway, "/ws/tasks") as opened:
        await say(opened, task_type="x", ref=1)
        submitted = await receive_one(opened)
        await receive_one(opened)  # it is queued
        await say(opened, cancel=submitted["task_id"], ref=2)
        answers = [await receive_one(opened), await receive_one(opened)]
        (accepted,) = [one for one in answers if one["type"] == "ACCEPTED"]
        await say(opened, cancel=NO_TASK, ref=3)
        refused = await receive_one(opened)
    own = fields_of("Of a socket that submits")
    assert set(own) == {"SUBMITTED", "ACCEPTED", "ERROR"}
    assert set(submitted) == {"type", *own["SUBMITTED"], *SubmitAnswer.__struct_fields__}
    assert set(accepted) == {"type", *own["ACCEPTED"], *CancelAnswer.__struct_fields__}
    assert set(refused) == {"type", *own["ERROR"]}
