"""The compiled form of `prefetch`: one instruction of the processor."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped
from numba.extending import intrinsic, overload

from rewritelog.kernels.prefetch import prefetch

cgutils: Any = untyped

_READ, _KEEP, _DATA = 0, 3, 1
"""Arguments of `llvm.prefetch`: data to be read, and kept in all levels of the cache."""


def _prefetch_code(_typing: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, args[0])
        (stride,) = cgutils.unpack_tuple(builder, made.strides, 1)
        byte = ir.IntType(8).as_pointer()
        address = builder.gep(builder.bitcast(made.data, byte), [builder.mul(args[1], stride)])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, word(_READ), word(_KEEP), word(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


_prefetch: Any = intrinsic(_prefetch_code)


@overload(prefetch)
def _compile_prefetch(array: Any, at: Any) -> Any:  # noqa: ARG001
    def compiled(array: Any, at: Any) -> Any:
        _prefetch(array, at)

    return compiled
