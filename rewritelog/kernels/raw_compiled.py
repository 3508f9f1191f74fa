"""The compiled forms of the loads and stores in `raw`; importing this module registers them.

They read and write the memory of an array without checks: callers check bounds. With
`NUMBA_BOUNDSCHECK=1` they check bounds too, as numba then does for every index.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic, overload

from rewritelog.kernels.raw import load_f8, load_i2, load_i4, store_f8


def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any, word: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), word.as_pointer())


def _loader(word: ir.IntType, result: Any, real: ir.Type | None) -> Any:
    @intrinsic
    def load(_typing: Any, buf: Any, at: Any, swap: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], args[0], args[1], word)
            raw = builder.load(address)
            raw.align = 1
            value = builder.select(args[2], builder.bswap(raw), raw)
            if real is not None:
                return builder.bitcast(value, real)
            return builder.sext(value, ir.IntType(64))

        return result(buf, types.int64, types.boolean), codegen

    return load


def _store_f8_code(_typing: Any, buf: Any, at: Any, value: Any, swap: Any) -> Any:  # noqa: ARG001
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        address = _address(context, builder, signature.args[0], args[0], args[1], word)
        raw = builder.bitcast(args[2], word)
        builder.store(builder.select(args[3], builder.bswap(raw), raw), address).align = 1
        return context.get_dummy_value()

    return types.void(buf, types.int64, types.float64, types.boolean), codegen


_store_f8: Any = intrinsic(_store_f8_code)
_load_i2 = _loader(ir.IntType(16), types.int64, None)
_load_i4 = _loader(ir.IntType(32), types.int64, None)
_load_f8 = _loader(ir.IntType(64), types.float64, ir.DoubleType())


_CHECKED = bool(vars(config)["BOUNDSCHECK"])


# numba requires the annotations of a compiled form to be those of the function that returns it.


def _compile_load(function: Any, load: Any, length: int) -> None:
    """Register the compiled form of a load of `length` bytes."""
    problem = f"a load of {length} bytes outside of the buffer"

    def compiled(buf: Any, at: Any, swap: Any) -> Any:
        if _CHECKED and (at < 0 or at + length > len(buf)):
            raise IndexError(problem)
        return load(buf, at, swap)

    @overload(function)
    def form(buf: Any, at: Any, swap: Any) -> Any:  # noqa: ARG001
        return compiled


_compile_load(load_i2, _load_i2, 2)
_compile_load(load_i4, _load_i4, 4)
_compile_load(load_f8, _load_f8, 8)


@overload(store_f8)
def _compile_store_f8(buf: Any, at: Any, value: Any, swap: Any) -> Any:  # noqa: ARG001
    def compiled(buf: Any, at: Any, value: Any, swap: Any) -> Any:
        if _CHECKED and (at < 0 or at + 8 > len(buf)):
            raise IndexError("a store of 8 bytes outside of the buffer")
        _store_f8(buf, at, value, swap)

    return compiled
