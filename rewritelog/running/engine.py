"""What an engine is: a function mapped over items by several workers, results in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from rewritelog.running import EngineName

AHEAD = 4
"""The number of items in progress per worker."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Results: TypeAlias = Generator[Result, None, None]
Input = TypeVar("Input", contravariant=True)  # noqa: PLC0105 - only the first is exported
Output = TypeVar("Output", covariant=True)  # noqa: PLC0105


class Work(Protocol[Input, Output]):
    """The function for one block. It is pickled for other processes, once for each pass."""

    def __call__(self, block: Input, /) -> Output:
        """Return the result of one block."""


class Gathered(ABC, Generic[Item, Result]):
    """Work with a state in each process, which the leading process gathers in the end."""

    @abstractmethod
    def __call__(self, block: Item, /) -> Result:
        """Return the result of one block."""

    @abstractmethod
    def state(self) -> Any:
        """Return the state of a process that has no more blocks; it is pickled."""

    @abstractmethod
    def gather(self, state: Any) -> None:
        """Add the state of another process, in the leading one."""


class Engine(ABC):
    """The workers of one job."""

    name: EngineName
    leads = True
    """False in a process that only works for the leading one, by calling `serve`."""
    workers: int
    """The number of blocks that are processed at a time."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(  # noqa: B027 - not every engine has anything to clean up
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        """End the workers."""

    @abstractmethod
    def map(self, work: Work[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield the results in the order of the items; the first error ends the pass."""

    def serve(self) -> None:  # noqa: B027 - not every engine has further processes
        """Work for the leading process until its job is done."""
