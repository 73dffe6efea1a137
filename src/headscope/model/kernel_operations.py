"""The operations of compiled loops that numba does not have, written as LLVM takes them.

x·log2(x) reads the exponent off the float's bits: with x = 2^e (1+t), the bits as an integer are
already e + t, and a polynomial fitted at import adds log2(1+t) - t, exactly 0 at both ends, with an
error below 1e-7. x must not be negative; what is below the normal floats (1e-38) adds nothing that
float32 can hold.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _log2_polynomial(degree: int) -> tuple[np.float32, ...]:
    """r with t(1-t)·r(t) = log2(1+t) - t on [0, 1]: coefficients, highest power first."""
    t = (np.cos(np.pi * (np.arange(4000) + 0.5) / 4000) + 1) / 2
    hump = t * (1 - t)
    fit = np.polynomial.Chebyshev.fit(
        t, (np.log2(1 + t) - t) / hump, degree, domain=[0, 1], w=np.sqrt(hump) + 0.05
    )
    power = fit.convert(kind=np.polynomial.Polynomial).coef
    return tuple(np.float32(c) for c in power[::-1])


_LOG2 = _log2_polynomial(6)
_BITS_OF_ONE = 0x3F800000
_MANTISSA = 0x007FFFFF
_PER_OCTAVE = 2.0**-23
LANES = 16  # running sums of a row, side by side
LN2 = float(np.log(2.0))  # nats of a bit


@intrinsic
def _bits(_context: Any, _value: Any) -> Any:
    def generate(_c: Any, builder: Any, _s: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def _float(_context: Any, _value: Any) -> Any:
    def generate(_c: Any, builder: Any, _s: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def _members(_context: Any, _value: Any) -> Any:
    def generate(_c: Any, builder: Any, _s: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def _fma(_context: Any, _x: Any, _y: Any, _z: Any) -> Any:
    """x·y + z, rounded once; left to the compiler, that would be a matter of the processor.

    The loop that it stands in is given vectors of 512 bits where there are such: by itself LLVM
    takes half as many on most of these processors, and needs up to twice the time.
    """
    return types.float32(types.float32, types.float32, types.float32), (
        lambda _c, builder, _s, arguments: _fused(builder, *arguments)
    )


def _fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    set.add(builder.function.attributes, '"prefer-vector-width"="512"')  # unknown to llvmlite
    name = f"llvm.fma.v{LANES}f32" if isinstance(x.type, ir.VectorType) else "llvm.fma.f32"
    kind = ir.FunctionType(x.type, [x.type] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
    return builder.call(fma, [x, y, z])


@intrinsic
def _lane_sum(_context: Any, _numbers: Any, _begin: Any, _size: Any) -> Any:
    """Σ numbers[begin : begin + size], float32 without gaps; `size` is a multiple of LANES.

    LANES running sums side by side, added up in halves; LLVM makes no vectors of such a loop.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector, place = ir.VectorType(ir.FloatType(), LANES), ir.IntType(32)
        total = cgutils.alloca_once(builder, vector)  # type: ignore[no-untyped-call]
        builder.store(ir.Constant(vector, [0.0] * LANES), total)
        first = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        count = builder.sdiv(arguments[2], ir.Constant(arguments[2].type, LANES))
        with cgutils.for_range(builder, count) as loop:
            some = builder.load(builder.gep(first, [loop.index]), align=4)
            builder.store(builder.fadd(builder.load(total), some), total)
        lanes, half = builder.load(total), LANES
        while half > 1:
            half //= 2
            ends = (
                ir.Constant(ir.VectorType(place, half), [*range(at, at + half)]) for at in (0, half)
            )
            lanes = builder.fadd(*(builder.shuffle_vector(lanes, lanes, end) for end in ends))
        return builder.extract_element(lanes, ir.Constant(place, 0))

    return types.float32(_numbers, types.intp, types.intp), generate


def _entropy_part(builder: Any, x: Any) -> Any:
    """x·log2(x) of a number, or of each of a vector of LANES, see the module."""
    vector = isinstance(x.type, ir.VectorType)
    whole = ir.VectorType(ir.IntType(32), LANES) if vector else ir.IntType(32)

    def constant(kind: Any, number: float) -> Any:
        return ir.Constant(kind, [number] * LANES if vector else number)

    one, bits = constant(x.type, 1.0), builder.bitcast(x, whole)
    octaves = builder.sitofp(builder.sub(bits, constant(whole, _BITS_OF_ONE)), x.type)
    octaves = builder.fmul(octaves, constant(x.type, _PER_OCTAVE))
    mantissa = builder.and_(bits, constant(whole, _MANTISSA))
    t = builder.bitcast(builder.or_(mantissa, constant(whole, _BITS_OF_ONE)), x.type)
    t = builder.fsub(t, one)
    p, *others = (constant(x.type, float(one)) for one in _LOG2)
    for coefficient in others:
        p = _fused(builder, p, t, coefficient)
    hump = builder.fmul(t, builder.fsub(one, t))
    return builder.fmul(x, _fused(builder, hump, p, octaves))


@intrinsic
def _xlog2x(_context: Any, _x: Any) -> Any:
    return types.float32(types.float32), (
        lambda _c, builder, _s, arguments: _entropy_part(builder, *arguments)
    )


@intrinsic
def _add_xlog2x(_context: Any, _a: Any, _b: Any, _weight: Any, _sums: Any, _size: Any) -> Any:
    """sums += weight·x·log2(x) of x = a + b, of `size` numbers each, a multiple of LANES.

    Written in vectors: of the plain loop LLVM makes shorter ones, and reads every constant again
    for each. Arrays are without gaps.
    """
    if any(array.layout != "C" for array in (_a, _b, _sums)):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.FloatType(), LANES)
        empty = ir.Constant(vector, ir.Undefined)
        a, b, sums = (
            builder.bitcast(
                context.make_array(signature.args[at])(context, builder, arguments[at]).data,
                vector.as_pointer(),
            )
            for at in (0, 1, 3)
        )
        first = ir.Constant(ir.IntType(32), 0)
        weight = builder.insert_element(empty, arguments[2], first)
        every = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        weight = builder.shuffle_vector(weight, empty, every)
        count = builder.sdiv(arguments[4], ir.Constant(arguments[4].type, LANES))
        with cgutils.for_range(builder, count) as loop:
            x = builder.fadd(
                *(builder.load(builder.gep(part, [loop.index]), align=4) for part in (a, b))
            )
            place = builder.gep(sums, [loop.index])
            before = builder.load(place, align=4)
            total = _fused(builder, weight, _entropy_part(builder, x), before)
            builder.store(total, place, align=4)
        return context.get_dummy_value()

    return types.void(_a, _b, types.float32, _sums, types.intp), generate
