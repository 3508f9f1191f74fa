"""`rewritelog models`."""

from __future__ import annotations

from rewritelog.commands.command import Printing, Shell
from rewritelog.options import argument, declared


@declared
class Models(Printing[None]):
    """List the models, or describe one: what it is for, and its options."""

    shell = frozenset()

    name: str | None = argument(
        "The model to describe.", metavar="NAME", default=None, kw_only=False,
        complete="model",
    )  # fmt: skip

    def print(self, shell: Shell) -> int:
        """Print the list, or the description of the model."""
        from rewritelog.models.describe import model_text, models_text

        shell.write((models_text() if self.name is None else model_text(self.name)) + "\n")
        return 0
