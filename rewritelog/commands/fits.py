"""Commands about timing lines and models: `stats`, `merge`, `fit`, `predict` and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from rewritelog.commands.command import (
    REPORT,
    Command,
    Logs,
    ModelFile,
    OptionalLogs,
    TracesArgument,
    function,
)
from rewritelog.commands.durations import (
    MODEL_HELP,
    FormulasFile,
    ModelInputs,
    OptionalTimings,
    ParamNamesFile,
    Reading,
    TimingLines,
)
from rewritelog.errors import MissingFileError, UsageError, spelled
from rewritelog.options import (
    MODEL,
    OUTPUT,
    As,
    InputPaths,
    Jobs,
    Kind,
    ModelInput,
    NodeChoice,
    OptionalOutput,
    Options,
    OutputFile,
    OutputPath,
    ParamsFolder,
    PathsLike,
    Seed,
    argument,
    listed,
    option,
)

if TYPE_CHECKING:
    from rewritelog.api.fitted import FittedModel
    from rewritelog.evaluation.compare import CompareReport
    from rewritelog.evaluation.fit import FitReport
    from rewritelog.evaluation.predict import CallPrediction, PredictedRecords, Predictions
    from rewritelog.evaluation.verify import VerifyReport
    from rewritelog.models.base import Model
    from rewritelog.sampling.sample import SampleReport
    from rewritelog.timings.merge import MergedLines
    from rewritelog.timings.stats import LineStats
    from rewritelog.timings.traces import WrittenTimings

ModelArgument: TypeAlias = Annotated["str | Model[Any]", Kind(use="text", error="ModelError")]
ModelNames: TypeAlias = Annotated[
    As["str | Sequence[str]", "tuple[str, ...]"],
    Kind("options:listed", several=True, use="text", error="ModelError"),
]
DEFAULT_MODELS = ("auto", "least-squares")
DEFAULT_FOLDS = 10
SampleMethod: TypeAlias = Literal["design", "coverage", "random"]
"""How the SEBs to be timed are chosen among those of an event."""
FilesOrCall: TypeAlias = Annotated["PathsLike", Kind(several=True, error="TimingError")]


class Outputs(Options):
    """Outputs of programs."""

    files: InputPaths = argument(
        "Outputs of a program, plain or compressed; - is standard input.",
        metavar="FILE...",
        kw_only=False,
    )


class StatsCommand(ParamNamesFile, Outputs, Command["LineStats"]):
    """Summarise timing lines: events, counts, ranges, times.

    >>> rewritelog.stats("sample_logs/cells/timings.txt")
    <LineStats: Cell::bonded(p1): 200 lines, 8.998 ms in all, 44.99 µs on average>
    """

    job = "timings.stats:line_stats"


class MergeCommand(Outputs, Command["MergedLines"]):
    """Sort the timing lines of many outputs into one file.

    >>> rewritelog.merge(["sample_logs/cells/timings.txt"], output="merged.txt")
    <MergedLines: timing lines: 600>
    """

    job = "timings.merge:merge"

    output: OutputPath = option("The file to write [default: -, standard output].", default="-")
    force: bool = option(
        "Replace the output if it exists, even if it is one of the inputs.", default=False
    )


class TimingsCommand(Jobs, NodeChoice, Command["WrittenTimings"]):
    """Write a timing line for each node of Chakra traces, to fit models to them.

    >>> written = rewritelog.write_timings("sample_logs/transformer/profile", "nodes.txt")
    >>> rewritelog.read_timings("nodes.txt")
    <Timings: 112 samples of 4 events (aten::layer_norm, aten::mm, …)>
    """

    job = "timings.traces:write_timings"
    shell = REPORT | {"engine"}

    traces: TracesArgument = argument(
        "Chakra traces: a folder, a file, or FOLDER/NAME.", metavar="TRACES", kw_only=False
    )
    output: OutputFile = option("The file of timing lines.", group=OUTPUT, kw_only=False)


class FitCommand(Jobs, ParamNamesFile, ModelInputs, TimingLines, Command["FittedModel"]):
    """Fit a model to timing lines, and write it to a model file.

    `rewrite`, `predict` and `verify` use the file without the timings.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt", model_options={"loss": "squares"})
    >>> fitted.events
    ('Cell::pairForces', 'Cell::bonded')
    """

    job = "evaluation.fit:fit"
    shell = REPORT | {"html", "verbose"}

    model: ModelArgument = option(
        f"{MODEL_HELP}.", default="auto", metavar="NAME", group=MODEL, complete="model",
        kw_only=False,
    )  # fmt: skip

    event: str | None = option(
        "Show the whole fit of this event, and its formula; * matches anything.",
        default=None, metavar="NAME", complete="event", init=False,
    )  # fmt: skip
    output: OptionalOutput = option(
        "The model file to write [default: none, only report]; - is standard output.",
        default=None, group=OUTPUT,
    )  # fmt: skip

    @property
    def model_name(self) -> str:
        """The name of the model in reports."""
        return self.model if isinstance(self.model, str) else type(self.model).__name__

    def returned(self, result: FitReport) -> FittedModel:
        """Return the fitted model."""
        from rewritelog.api.fitted import FittedModel

        return FittedModel(**vars(result.fitted), timings=result.timings)


class PredictCommand(Reading, ModelFile, Command["PredictedRecords"]):
    """Predict the time of each record of files, as CSV, or of one call of an event.

    `predict MODEL EVENT 157 9`, or `EVENT n=157 m=9`, predicts the time of that call.

    Beside the predicted time are the measured one if the record has one, the bounds of the 90 %
    interval, and what determined it: fit, exact, out of range, or no model. Malformed lines are
    skipped, as `warnings` tell at the end.

    Predictions are the usual times of single calls. Their sum is too small where a few calls take
    much longer: for sums that agree with measured ones, `rewrite` multiplies predictions by a
    factor of each fit, unless its `total` is typical.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> records = rewritelog.predict(fitted, "sample_logs/cells/param.0")
    >>> next(records)["determined_by"]
    'fit'
    """

    job = "evaluation.predict:predictions"
    shell = REPORT - {"report_file"}
    prints_lines = True
    exits = "1 if the model predicts none of the records"
    succeeds = "predicted"

    files: FilesOrCall = argument(
        "Files of params (param.P), timing lines or chosen SEBs; or an event and its parameters.",
        metavar="FILE...", kw_only=False,
    )  # fmt: skip
    output: OptionalOutput = option(
        "The file to write; - is standard output, the default of the command line.",
        default=None, group=OUTPUT,
    )  # fmt: skip

    def returned(self, result: Predictions | CallPrediction) -> PredictedRecords:
        """Return a dict for each record, with None for what is unknown."""
        return result.rows()


class VerifyCommand(Reading, ParamNamesFile, TimingLines, ModelFile, Command["VerifyReport"]):
    """Compare the predictions of a model file with measured times.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> report = rewritelog.verify(fitted, "sample_logs/cells/timings.txt")
    >>> round(report.overall.r2, 2)
    0.99
    """

    job = "evaluation.verify:verify_lines"
    exits = "1 if the model predicts none of the lines"
    succeeds = "overall.predicted"
    shell = REPORT | {"html"}

    worst: int = option("How many of the worst lines to show.", default=10, least=0)


class CompareCommand(Jobs, Seed, ModelInputs, TimingLines, Command["CompareReport"]):
    """Compare models on held-out timing lines.

    Lines are held out event by event. Options of models go to all models that have them.

    >>> report = rewritelog.compare("sample_logs/cells/timings.txt", ["least-squares"], folds=5)
    >>> report.tried[0].overall.predicted
    600
    """

    job = "evaluation.compare:compare"
    succeeds = "predicted"
    shell = REPORT | {"html"}

    models: ModelNames = option(
        "The models to compare [default: auto, least-squares].",
        default=DEFAULT_MODELS, metavar="NAME,NAME,...", group=MODEL, complete="models",
        kw_only=False,
    )  # fmt: skip
    folds: int = option(
        "Divide the lines into N parts, and hold out each in turn: N fits of each model.",
        default=DEFAULT_FOLDS,
        least=2,
    )
    fraction: float | None = option(
        "Fit to this share of each event's lines instead, drawn at random, and predict the rest.",
        default=None, metavar="SHARE", above=0, below=1,
    )  # fmt: skip
    repeats: int = option(
        "Repeat the comparison N times, each time with a new seed.", default=1, least=1
    )

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except MissingFileError as error:
            self._check_words(error)
            raise
        if not self.models or len(set(self.models)) < len(self.models):
            raise UsageError("give at least one model, each only once")
        if self.fraction is not None and self.folds != DEFAULT_FOLDS:
            raise UsageError(f"give {spelled('folds')} or {spelled('fraction')}, not both")

    def _check_words(self, error: MissingFileError) -> None:
        """Raise `UsageError` if the missing file has the name of a model."""
        from rewritelog.models.registry import known_models

        word, known = str(error).partition(":")[0], known_models()
        if word in known:
            named = listed(self.models, "models")
            others = [name for name in named if name in known or ":" in name]
            models = ",".join(dict.fromkeys((*others, word)))
            raise UsageError(f"{word} is a model, not a file: write {spelled('models', models)}")


class SampleCommand(
    Reading, ParamNamesFile, Jobs, Seed, ParamsFolder, Logs, Command["SampleReport"]
):
    """Choose the SEBs to time, for a fit that predicts all others best.

    The list has the PE, SEB, event and parameters of each; a program that is instrumented with
    tracebigsim, or a cycle-accurate simulator, then times only these. Calls that are already timed
    count as known.

    >>> report = rewritelog.sample("sample_logs/cells", fraction=0.2)
    >>> report.chosen
    16
    """

    job = "sampling.sample:sample"
    shell = REPORT | {"html"}

    timings: OptionalTimings = option(
        "Files of timing lines that exist already; - is standard input.",
        default=None, metavar="FILE...", group=MODEL,
    )  # fmt: skip
    fraction: float = option(
        "Share of the param records to choose, in (0, 1].",
        default=0.02, metavar="SHARE", above=0, most=1,
    )  # fmt: skip
    method: SampleMethod = option(
        "design: some where a fit is least certain, the rest spread over the parameters; coverage: "
        "all spread over the parameters; random: at random.",
        default="design",
    )  # fmt: skip
    floor: int = option(
        "Choose at least N records of each event and category, with those timed already.",
        default=5, least=1,
    )  # fmt: skip
    formulas: ModelInput = option(
        "A formulas file: SEBs are chosen from each category, to span its terms.",
        default=None, rare=True,
    )  # fmt: skip
    replicates: int = option(
        "Choose some parameters of each event N times, if they recur; more often if times of equal "
        "calls vary.",
        default=1, rare=True, least=1,
    )  # fmt: skip
    output: OptionalOutput = option(
        "The list to write [default: none, only report]; - is standard output.",
        default=None, group=OUTPUT, kw_only=False, reported=False,
    )  # fmt: skip


class ExploreCommand(
    Jobs, Reading, ParamNamesFile, ParamsFolder, FormulasFile, TimingLines, Command["None"]
):
    """Look at fits on a live page, change them, and save the result.

    The page is served to browsers on this machine only, at an address that cannot be guessed, until
    Ctrl-C.

    >>> rewritelog.explore("sample_logs/cells/timings.txt")  # doctest: +SKIP
    """

    job = "viewing.explore:explore"
    shell = frozenset({"quiet"})

    logs: OptionalLogs = option(
        "Logs on which to show the effect of the fits.", default=None, metavar="DIR", kw_only=False
    )
    dilation: float | None = option(
        "Factor on durations that no fit covers, for the effect on LOGS; the page can change it "
        "[default: 1].",
        default=None, metavar="FACTOR", above=0, group=MODEL,
    )  # fmt: skip
    output: OutputPath = option(
        "The folder for formulas.toml and model.json, made if needed [default: the current one].",
        default=".", metavar="DIR", group=OUTPUT,
    )  # fmt: skip
    force: bool = option("Replace existing files of these names.", default=False, group=OUTPUT)
    no_browser: bool = option("Print the address, and open no browser.", default=False)


class ModelsCommand(Command[str]):
    """List the models, or describe one: what it is for, and its options."""

    shell = frozenset()

    name: str | None = argument(
        "The model to describe.", metavar="NAME", default=None, kw_only=False, complete="model"
    )

    def run(self) -> str:
        """Return the list, or the description of the model."""
        from rewritelog.models.registry import model_text, models_text

        return models_text() if self.name is None else model_text(self.name)


stats = function(StatsCommand)
merge = function(MergeCommand)
write_timings = function(TimingsCommand, "write_timings")  # `timings` is a package
fit = function(FitCommand)
predict = function(PredictCommand)
verify = function(VerifyCommand)
compare = function(CompareCommand)
sample = function(SampleCommand)
explore = function(ExploreCommand)
