"""`python -m chaos [CAMPAIGN ...]`: the long campaigns. Each prints its seed and keeps its figures."""

from typing import Annotated

from cyclopts import App, Parameter

from chaos import model

CAMPAIGNS = {"model": model.run}

app = App(name="chaos", help="Long fault campaigns; the short ones are in the tests.")


@app.default
def main(
    *campaigns: Annotated[str, Parameter(help="Which to run; all when none is named.")],
    seed: Annotated[int | None, Parameter(help="Repeat a campaign that printed this seed.")] = None,
    claims: Annotated[int, Parameter(help="Random claims of the model campaign.")] = 200_000,
    jobs: Annotated[int, Parameter(help="Processes of the model campaign.")] = 2,
) -> None:
    for name in campaigns or CAMPAIGNS:
        CAMPAIGNS[name](seed=seed, claims=claims, jobs=jobs)


if __name__ == "__main__":
    app()
