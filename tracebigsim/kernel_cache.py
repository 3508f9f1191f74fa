"""Disk cache of compiled kernels: a folder only this user can write to, a file per signature.

The files are pickles, so anyone who can write them can run code as the user who reads them.
Therefore a folder is used only if nobody but the user can change it or any folder above it.
A file that cannot be read counts as absent, and failing to write one is no error.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

_SUFFIX = ".kernel"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class NoKernelCacheWarning(UserWarning):
    """Compiled kernels cannot be cached, so each run compiles them anew."""


_warned = False


class KernelCache:
    """The cache files of one kernel, with the interface that numba's dispatchers expect."""

    def __init__(self, function: FunctionType, digest: str) -> None:
        source = Path(function.__code__.co_filename)
        self.folder = folder_of(source.parent)
        abi = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
        self._kernel = f"{source.stem}.{function.__qualname__}-{abi}-"
        self._prefix = f"{self._kernel}{digest[:20]}-"

    @property
    def cache_path(self) -> str | None:
        """The cache folder, for numba's statistics."""
        return None if self.folder is None else str(self.folder)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    disable = flush = enable

    def holds_any(self) -> bool:
        """Return whether the kernel has been compiled for any signature."""
        return any(name.startswith(self._prefix) for name in names_in(self.folder))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the kernel compiled for a signature, None if it is absent or damaged."""
        from numba.core.compiler import CompileResult  # noqa: PLC0415 - only where kernels compile

        target.refresh()
        if self.folder is None:
            return None
        try:
            data = (self.folder / self._name(signature, target.codegen())).read_bytes()
            rebuild: Any = CompileResult._rebuild  # noqa: SLF001 - numba has no public way
            return rebuild(target, *pickle.loads(data))  # noqa: S301 - the folder is private
        except Exception:  # noqa: BLE001 - whatever a cut or foreign file leads to
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write a compiled kernel to the cache; warn if that fails."""
        from numba.core.serialize import dumps  # noqa: PLC0415 - only where kernels compile

        if self.folder is None:
            warn_once("no folder for them is owned by the user and writable by nobody else")
        elif not compiled.library.has_dynamic_globals:
            name = self._name(signature, compiled.codegen)
            try:
                self._write(name, dumps(compiled._reduce()))  # type: ignore[no-untyped-call] # noqa: SLF001
                self._remove_stale()
            except OSError as error:
                warn_once(f"{self.folder}: {error.strerror}")

    def _name(self, signature: Any, codegen: Any) -> str:
        import numba  # noqa: PLC0415 - only where kernels compile

        options = os.environ.get("NUMBA_BOUNDSCHECK", "")
        key = repr((numba.__version__, str(signature), codegen.magic_tuple(), options))
        return f"{self._prefix}{hashlib.sha256(key.encode()).hexdigest()[:20]}{_SUFFIX}"

    def _write(self, name: str, data: bytes) -> None:
        """Write a file atomically, even while other processes write it."""
        path = Path(str(self.folder)) / name
        draft = path.with_name(f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            with draft.open("xb") as file:
                file.write(data)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def _remove_stale(self) -> None:
        """Remove files compiled from other versions of the source."""
        for name in names_in(self.folder):
            if name.startswith(self._kernel) and not name.startswith(self._prefix):
                (Path(str(self.folder)) / name).unlink(missing_ok=True)


def names_in(folder: Path | None) -> list[str]:
    """Return the names of a folder's kernel files; none if it cannot be read."""
    if folder is None:
        return []
    try:
        return [path.name for path in folder.iterdir() if path.name.endswith(_SUFFIX)]
    except OSError:
        return []


@cache
def folder_of(sources: Path) -> Path | None:
    """Return the cache folder for the kernels of a source folder, None if none is safe."""
    for folder in _candidates(sources):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            real = folder.resolve(strict=True)
            if is_private(real) and os.access(real, os.W_OK | os.X_OK):
                return real
        except (OSError, RuntimeError):
            continue
    return None


def _candidates(sources: Path) -> Iterator[Path]:
    """Yield the folder named by the user, that beside the sources, and that in the user's cache."""
    digest = hashlib.sha256(str(sources.resolve()).encode()).hexdigest()[:16]
    own = f"{sources.name}-{digest}"
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(named).absolute() / own
        return
    yield sources / "__pycache__"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    if os.path.isabs(base):  # noqa: PTH117 - as the XDG specification has it
        yield Path(base) / "rewritelog" / own


def is_private(folder: Path) -> bool:
    """Return whether only the user and root can change a folder or replace it by another.

    The folder itself must be the user's own. Above it, folders with the sticky bit may be writable
    by all, as /tmp is.
    """
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
        return False
    for above in folder.parents:
        status = above.stat()
        if status.st_uid not in (0, os.geteuid()):
            return False
        if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            return False
    return True


def warn_once(reason: str) -> None:
    """Warn, once per process, that kernels are compiled anew in each run."""
    global _warned  # noqa: PLW0603 - one warning a process is the point
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels cannot be cached, so every run compiles them again: {reason}; "
            "set NUMBA_CACHE_DIR to a folder of your own",
            NoKernelCacheWarning,
            stacklevel=2,
        )
