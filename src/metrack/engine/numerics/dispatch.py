"""How compiled code finds the functions of a part - a representation, a loss, a combiner.

Parts are told apart by the type of a function's first argument, a NamedTuple class that the part
brings along. So what is used is compiled and nothing else, there is no branch at run time, and a
part from outside of the package is as good as one of its own. The type is also in the key
under which compiled code is kept: what was compiled for one part is never taken for another.
"""

from collections.abc import Callable, Mapping
from typing import Any

from numba.core import types
from numba.extending import overload

from metrack.engine.numerics.kernels import OPTIONS, ROUTINE, F


def by_type(parts: Mapping[type, Any], inline: bool = False) -> Callable[[F], F]:
    """Compile calls of a function as calls of its namesake in the part of its first argument.

    Whole numbers have a part of their own, under ``int``.
    """
    options: Any = OPTIONS | ROUTINE | ({"forceinline": True} if inline else {})

    def decorate(stub: F) -> F:
        def implementation(first: Any, *_: Any) -> Any:
            kind = int if isinstance(first, types.Integer) else first.instance_class
            return getattr(parts[kind], stub.__name__).py_func

        overload(stub, jit_options=options, strict=False)(implementation)
        return stub

    return decorate
