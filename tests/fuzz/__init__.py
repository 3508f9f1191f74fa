"""Fuzzing of every reader: `python -m fuzz --target timelines --seconds 600`.

- `arena`: memory between pages that cannot be touched
- `mutation`: how a good input is damaged
- `promises`: what must hold of a block of timelines, whatever bytes it has
- `timelines`: timelines, walked and rewritten
- `lines`: timing and param lines through the scanner
- `cores` and `core/`: the compiled cores under sanitizers, with clang's fuzzer
- `readers`: files through the readers and commands that a user calls
- `targets`: the targets by name; a new one is an entry there
- `seeds`: the good inputs

What holds is in `docs/measurements/reliability.md`:
a result or a `RewriteLogError`, and nothing else.
"""
