"""`rewritelog rules`."""

from __future__ import annotations

from rewritelog.commands.command import Printing, Shell, function
from rewritelog.options import argument, declared


@declared
class Rules(Printing[str]):
    """List the rules that `check` applies, or explain what one of them protects.

    >>> "The summary has 52, 56 or 60 bytes" in rewritelog.rules("summary")
    True
    """

    shell = frozenset()

    rule: str | None = argument("The rule to explain.", metavar="RULE", default=None, kw_only=False)

    def run(self) -> str:
        """Return the list, or the description of the rule."""
        from rewritelog.checking.rules import rule_of_name, rules_text

        return rules_text() if self.rule is None else rule_of_name(self.rule).text()

    def print(self, shell: Shell) -> int:
        """Print it."""
        shell.write(self.run() + "\n")
        return 0


rules = function(Rules)
