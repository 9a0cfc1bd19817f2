"""What a Python function gets as a step of a job."""

from typing import Any

import pytest

from fairlead import Context, Fairlead
from fairlead.errors import InvalidInput
from fairlead.model.reports import Completed, Failed
from fairlead.model.task import Task
from fairlead.pipeline.steps import StepInput, input_of, step_parameters
from fairlead.worker.outcome import Report
from tests.pipeline.tasks import JOB, claimed, report_by, step, success

fl = Fairlead()


@fl.task
async def draw(prompt: str, size: int = 1) -> list[Any]:
    return [prompt, size]


@fl.task
def collect(**everything: Any) -> dict[str, Any]:
    return everything


@fl.task(run_in="process")
def apart(prompt: str, ctx: Context) -> list[Any]:
    assert ctx.job
    return [prompt, ctx.job.step, dict(ctx.job.params)]


@fl.task
async def look(ctx: Context) -> Any:
    return ctx.job and [ctx.job.job_id, ctx.job.step, ctx.job.params, ctx.job.context]


def of(params: dict[str, Any], **context: Any) -> StepInput:
    return StepInput(JOB, 3, params, context)


def test_parameters_come_by_name_and_the_later_step_wins(subtests: pytest.Subtests) -> None:
    for job, names, given in [
        (of({"prompt": "a"}), {"prompt"}, {"prompt": "a"}),
        (of({"prompt": "a", "style": "oil"}), {"prompt"}, {"prompt": "a"}),
        (of({"prompt": "a"}, step_0_x=success({"prompt": "b"})), {"prompt"}, {"prompt": "b"}),
        (
            of({}, step_1_y=success({"prompt": "later"}), step_0_x=success({"prompt": "earlier", "size": 2})),
            {"prompt", "size"},
            {"prompt": "later", "size": 2},
        ),
        (
            of({}, step_10_y=success({"n": 10}), step_9_x=success({"n": 9}), step_2_z=success({"n": 2})),
            {"n"},
            {"n": 10},
        ),
        (
            of({"n": 1}, step_0_x=success(["n", 2]), step_1_y=success(None), step_2_z=success("n")),
            {"n"},
            {"n": 1},
        ),
        (
            of({"n": 1}, step_0_x__attempts=3, nonsense={"data": {"n": 2}}, step_x={"data": {"n": 3}}),
            {"n"},
            {"n": 1},
        ),
        (of({"n": None}, step_0_x=success({"m": 2})), {"n", "m", "k"}, {"n": None, "m": 2}),
        (of({"n": 1}, step_0_x=success({"m": 2})), None, {"n": 1, "m": 2}),
        (of({"n": 1}, step_0_x=success({"m": 2})), set(), {}),
    ]:
        with subtests.test(job=job, names=names, given=given):
            assert step_parameters(job, names) == given


def test_the_input_of_the_job_is_not_changed() -> None:
    job = of({"n": 1}, step_0_x=success({"n": 2}))
    step_parameters(job, None)["n"] = 3
    assert job == of({"n": 1}, step_0_x=success({"n": 2}))


def test_only_a_step_has_a_job() -> None:
    assert input_of(claimed("draw", {"params": {}, "context": {}})) is None
    assert input_of(claimed("draw", {"prompt": "a"}, job_id="my own id")) is None
    context = {"step_0_x": success(1)}
    assert input_of(step("draw", {"a": 1}, context)) == StepInput(JOB, 1, {"a": 1}, context)
    assert input_of(claimed("draw", {}, job_id=JOB, step=0)) == StepInput(JOB, 0, {}, {})


def test_a_missing_parameter_is_the_usual_error() -> None:
    with pytest.raises(
        InvalidInput, match=r"parameters: do not fit draw\(\): .*missing required field `prompt`"
    ):
        draw.handler.arguments(step("draw", {"promt": "a"}, {}))


def test_a_parameter_of_the_wrong_type_is_the_usual_error() -> None:
    with pytest.raises(InvalidInput, match=r"parameters: do not fit draw\(\): Expected `int`, got `str`"):
        draw.handler.arguments(step("draw", {"prompt": "a"}, {"step_0_x": success({"size": "large"})}))


def test_outside_of_a_job_nothing_is_taken_apart() -> None:
    assert collect.handler.arguments(claimed("collect", {"params": 1, "context": 2})) == {
        "params": 1,
        "context": 2,
    }
    with pytest.raises(InvalidInput, match="unknown field"):
        draw.handler.arguments(claimed("draw", {"prompt": "a", "style": "oil"}))


async def result_of(task: Task) -> Any:
    report = await report_of(task)
    assert isinstance(report, Completed)
    return report.result


async def report_of(task: Task) -> Report:
    return await report_by(fl.handlers, task)


async def test_a_runner_gives_a_step_what_it_takes() -> None:
    context = {"step_0_x": success({"prompt": "better", "seed": 4})}
    assert await result_of(step("draw", {"prompt": "a", "style": "oil"}, context)) == ["better", 1]
    assert await result_of(step("collect", {"prompt": "a"}, context)) == {"prompt": "better", "seed": 4}
    assert await result_of(step("look", {"a": 1}, context)) == [JOB, 1, {"a": 1}, context]
    assert await result_of(claimed("look", {})) is None


async def test_a_step_in_a_separate_process_gets_the_same() -> None:
    context = {"step_0_x": success({"prompt": "better"})}
    assert await result_of(step("apart", {"prompt": "a"}, context)) == ["better", 1, {"prompt": "a"}]


async def test_a_step_that_lacks_a_parameter_fails_for_good() -> None:
    report = await report_of(step("draw", {}, {}))
    assert isinstance(report, Failed)
    assert (report.code, report.retriable) == ("invalid_input", False)
