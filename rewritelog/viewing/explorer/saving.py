"""Writes the formulas file and the model file of a session, as the commands read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from rewritelog.errors import OutputError, spelled
from rewritelog.evaluation.fit import write_model
from rewritelog.models.base import ModelText
from rewritelog.models.fitted import Source
from rewritelog.models.formulas import parse_formulas
from rewritelog.output.files import check_outputs, write_text_file
from rewritelog.viewing.explorer.session import (
    NOT_CHANGED,
    Changed,
    FitChoices,
    Session,
    parsed_terms,
)

FORMULAS, MODEL = "formulas.toml", "model.json"


@dataclass
class Saving:
    """Saves a session in a folder; replaces files that it did not write only if `force` is set."""

    folder: Path
    inputs: list[Path]
    formulas: ModelText | None
    clock_hz: float | None = None
    force: bool = field(default=False, kw_only=True)
    written: dict[Path, int | None] = field(default_factory=dict, init=False)
    """The inode of each file that this session has written."""

    def save(self, session: Session, changed: Changed = NOT_CHANGED) -> list[str]:
        """Write both files and return their names; raise a `RewriteLogError` if that fails."""
        formulas = formulas_text(session, changed, self.formulas)
        paths = [self.folder / name for name in ((MODEL, FORMULAS) if formulas else (MODEL,))]
        if text := self._refusal(paths):
            raise OutputError(text)
        check_outputs(paths, self.inputs)
        source = Source.of(session.read.inputs, session.kept_timings(changed), self.clock_hz)
        model = replace(session.model(changed), source=source)
        for path in paths:
            if path.name == MODEL:
                write_model(path, model, through_links=False)
            else:
                write_text_file(path, formulas, through_links=False)
            self.written[path] = _inode(path)
        return [str(path) for path in paths]

    def refusal(self) -> str:
        """Make the folder; return why the files that are there would not be replaced, if so.

        Raise `OutputError` if no files could be saved in it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = f"{self.folder}: is not a folder to save in, and cannot become one"
            raise OutputError(f"{text}: {error.strerror}") from error
        paths = [self.folder / MODEL, self.folder / FORMULAS]
        check_outputs(paths, self.inputs)
        return self._refusal(paths)

    def _refusal(self, paths: list[Path]) -> str:
        for path in paths:
            if not self.force and _inode(path) not in (None, self.written.get(path)):
                problem = "was replaced since it was saved" if path in self.written else "exists"
                ways = f"another folder with {spelled('output')}, or {spelled('force', True)}"
                return f"{path}: {problem}; give {ways}"
        return ""


def _inode(path: Path) -> int | None:
    """Return the inode at this very path, be it a link's; None if nothing is there."""
    try:
        return path.lstat().st_ino
    except OSError:
        return None


def formulas_text(session: Session, changed: Changed, formulas: ModelText | None) -> str:
    """Return a formulas file: the events that were changed, then the given file's entries.

    It is empty if all events are fitted automatically and no file was given.
    """
    by_count = sorted(
        changed, key=lambda event: -session.events[event].parameters
    )  # an entry without params is for any number of them: it must come last
    entries = [line for event in by_count for line in _entry(session, event, changed[event])]
    if not entries and formulas is None:
        return ""
    text = "\n".join(["# written by rewritelog explore", *entries]) + "\n"
    if formulas is not None:
        text += f"\n# from {json.dumps(Path(formulas.name).name)}\n{formulas.text}"
    parse_formulas(text, FORMULAS)
    return text


def _entry(session: Session, event: int, choices: FitChoices) -> Iterator[str]:
    """Yield the lines of an event whose terms or category were chosen on the page."""
    timings, first = session.events[event], session.first_choices[event]
    if not choices.terms or (choices.terms, choices.category) == (first.terms, first.category):
        return
    count = timings.parameters
    yield "[[formula]]"
    yield f"event = {_toml_string(timings.event)}"
    if count:
        unnamed = ", ".join(['"_"'] * count)
        yield f"params = [{unnamed}]"
    yield "terms = ["
    yield from (f"    {_toml_string(str(term))}," for term in parsed_terms(choices.terms, count))
    yield "]"
    if choices.category:
        yield f"category = {_toml_string(choices.category)}"
    yield ""


def _toml_string(text: str) -> str:
    """Return a text as a TOML string; raise `OutputError` if it is not valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise OutputError(
            f"the name {text!a} is not valid UTF-8 and cannot be in a formulas file"
        ) from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
