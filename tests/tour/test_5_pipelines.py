"""The tour continues: pipelines. A job is one run of a pipeline; its steps are tasks, in a row or parallel.

The steps are functions here, in `tests/apps/story.py`. A step can as well be a service: an HTTP endpoint.
"""

import pytest

from fairlead import JobCancelled, JobFailed, NotResumable, UnknownPipeline
from fairlead.model.job import JobStatus
from fairlead.settings import Slots
from fairlead.testing import FakeClock, private
from tests.apps.story import fl


async def test_a_job_runs_the_steps_and_keeps_what_each_answered() -> None:
    async with private(fl), fl.worker():
        context = await fl.run("story", {"topic": "Zoë"}, user_id="ann", priority="high")
        assert context["step_0_outline"]["data"] == {"chapters": ["Zoë sets out", "Zoë comes home"]}
        assert context["step_1_draw"]["status"] == "SUCCESS"  # beside step_2_narrate
        assert context["step_3_bind"]["data"] == "a book of 2 pages, with 2 chapters.en.ogg"
        assert context["step_3_bind__attempts"] == 1


async def test_a_step_gets_by_name_what_the_job_was_given_and_what_earlier_steps_answered() -> None:
    async with private(fl), fl.worker():
        context = await fl.run("story", {"topic": "Zoë", "language": "fr"})
        assert context["step_2_narrate"]["data"] == {"audio": "2 chapters.fr.ogg"}


async def test_a_job_is_watched_step_by_step() -> None:
    async with private(fl), fl.worker():
        job = await fl.submit_job("story", {"topic": "Zoë"})  # at once, while it only begins
        done, kinds = [], []
        async for message in job.watch():  # the same messages as over a WebSocket
            kinds.append(message["type"])
            if message["type"] == "STEP_COMPLETE":
                done.append(message["service_name"])
        assert (done[0], done[-1], sorted(done[1:3])) == ("outline", "bind", ["draw", "narrate"])
        assert kinds[-1] == "JOB_COMPLETE"
        assert message["context"] == await job.result()


async def test_a_job_fails_with_its_step_and_says_which() -> None:
    async with private(fl), fl.worker():
        with pytest.raises(JobFailed, match="there is nothing to tell") as caught:
            await fl.run("story", {"topic": "nothing"})
        assert (caught.value.step, caught.value.code) == (0, "permanent_error")
        job = await fl.get_job(caught.value.job_id)
        with pytest.raises(NotResumable, match="failed for good"):
            await job.resume()
        await job.resume(force=True)  # for when its cause is fixed
        with pytest.raises(JobFailed, match="there is nothing to tell"):
            await job.result(timeout=30)


async def test_a_job_that_was_not_started_in_time_resumes_where_it_was() -> None:
    clock = FakeClock()
    async with private(fl, clock), fl.worker():
        await fl.store.limits.set("printer", Slots(limit=0))
        job = await fl.submit_job("story", {"topic": "Zoë"}, max_wait_seconds=60)  # that each step may wait
        async for message in job.watch():
            if message["type"] == "WAITING":
                assert message["limits"][0]["limit"] == "printer"
                clock.advance(60)
                await fl.store.promote()
        with pytest.raises(JobFailed, match="it can be resumed") as caught:
            await job.result()
        assert (caught.value.code, caught.value.step) == ("RESOURCE_EXHAUSTED", 3)

        await fl.store.limits.set("printer", Slots(limit=1))
        await job.resume()
        context = await job.result(timeout=30)
        assert context["step_0_outline__attempts"] == 1  # a completed step is not run again


async def test_a_job_is_cancelled_with_all_its_waiting_steps() -> None:
    async with private(fl):
        job = await fl.submit_job("story", {"topic": "Zoë"})
        await job.cancel()
        assert (await job.get()).status is JobStatus.CANCELLED
        with pytest.raises(JobCancelled):
            await job.result()


async def test_an_unknown_pipeline_is_refused_with_the_known_ones() -> None:
    async with private(fl):
        with pytest.raises(UnknownPipeline, match="there are story"):
            await fl.run("storry")
