"""The rules of `check`: what each says and why, beside the function that finds its violations.

Rules 1 to 7 of FORMAT 7 are `recv-before-send`, `message-size` with `event-type`,
`dependency-order`, `exec-time`, `send-outside`, `two-causes` and `floating`.
"""

from __future__ import annotations

from rewritelog.checking.rules import dependencies, events, files, messages, params, sebs
from rewritelog.checking.rules.rule import Rule, Severity
from rewritelog.errors import UsageError

RULES = {
    rule.name: rule
    for group in (files, sebs, messages, events, dependencies, params)
    for rule in vars(group).values()
    if isinstance(rule, Rule)
}
"""All rules by name: those of files first, then those of SEBs, then those of params."""


def rule_of_name(name: str) -> Rule:
    """Return a rule by name; raise `UsageError` listing all names for an unknown one."""
    if name not in RULES:
        raise UsageError(f"unknown rule {name!r}; the rules are {', '.join(RULES)}")
    return RULES[name]


def rules_text() -> str:
    """Return one line for each rule, most severe first."""
    width = max(map(len, RULES))
    lines = []
    for severity in Severity:
        lines.append(f"{severity.value}:")
        lines += [
            f"  {rule.name:{width}}  {rule.says}"
            for rule in RULES.values()
            if rule.severity is severity
        ]
    return "\n".join(lines)
