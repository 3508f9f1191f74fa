"""`rewritelog predict`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rewritelog.commands.command import WARNINGS, Printing, Shell, function
from rewritelog.commands.shared import Fitted
from rewritelog.options import (
    OUTPUT,
    InputPaths,
    OptionalOutput,
    Reading,
    argument,
    declared,
    option,
)

if TYPE_CHECKING:
    from rewritelog.evaluation.predict import CallPrediction


@declared
class Predict(Reading, Fitted, Printing[Iterator[dict[str, Any]]]):
    """Print the predictions of a model file: as CSV for files, or for one call of an event.

    `predict MODEL EVENT 157 9`, or `EVENT n=157 m=9`, predicts the time of that call.

    The measured time is printed beside the predicted one if the record has one, and the bounds of
    the 90 % interval. For each prediction it prints what determined it: fit, exact, out of range,
    or no model. Malformed lines are skipped. The exit code is 1 if the model has no prediction for
    any record.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> next(rewritelog.predict(fitted, "sample_logs/cells/param.0"))["determined_by"]
    'fit'
    """

    shell = WARNINGS | {"as_json", "quiet"}
    prints_lines = True

    files: InputPaths = argument(
        "Files of params (param.P), timing lines or chosen SEBs; or an event and its parameters.",
        metavar="FILE...", kw_only=False,
    )  # fmt: skip
    output: OptionalOutput = option(
        "The file to write [default: -, standard output].",
        default=None, names=("--output", "-o"), metavar="FILE", group=OUTPUT,
    )  # fmt: skip

    def run(self) -> Iterator[dict[str, Any]]:
        """Return a dict for each record, with None for what is unknown."""
        from rewritelog.evaluation.predict import rows_of
        from rewritelog.evaluation.predictions import MalformedLines

        opened = self.opened
        predicted = opened.model.predict_detailed(
            opened.files, MalformedLines(), strict=self.strict
        )
        return (row for lines in predicted for row in rows_of(lines, self.clock_hz))

    def print(self, shell: Shell) -> int:
        """Print a line for each record, or write them to a file."""
        from rewritelog.evaluation.predict import predict
        from rewritelog.evaluation.predictions import MalformedLines
        from rewritelog.output import check_outputs, write_text_file
        from rewritelog.text import json_text

        if call := self._call():
            shell.write((json_text(call.to_json()) if shell.as_json else call.text()) + "\n")
            return 0
        opened, malformed = self.opened, MalformedLines()
        texts = predict(
            opened.model, opened.files, "jsonl" if shell.as_json else "csv", malformed,
            self.clock_hz, strict=self.strict,
        )  # fmt: skip
        if opened.output is None or shell.is_stdout(opened.output):
            for text in texts:
                shell.write(text)
        else:
            check_outputs([opened.output], [Path(str(self.model)), *opened.files])
            write_text_file(opened.output, "".join(texts))
        shell.warn(malformed.warnings())
        if malformed.predicted:
            return 0
        shell.warn((f"{self.model}: the model has no prediction for any record",))
        return 1

    def _call(self) -> CallPrediction | None:
        """Return the prediction of a call, if an event of the model is given, and no file."""
        from rewritelog.api.fitted import to_predictor
        from rewritelog.errors import MissingFileError
        from rewritelog.evaluation.predict import predict_call
        from rewritelog.text import some_text

        event, *values = [str(word) for word in self.files]
        if event == "-" or Path(event).exists():
            return None
        predictor = to_predictor(cast("Any", self.model), "model")
        if not predictor.events:
            return None
        if event not in predictor.events:
            listed = some_text(sorted(predictor.events), 5)
            raise MissingFileError(
                f"{event}: is neither a file nor an event of {predictor.name}; its events: {listed}"
            )
        return predict_call(predictor, event, values)


predict = function(Predict)
