"""Routines are optimised once, with the kernel that calls them.

numba optimises and emits machine code for every function that it compiles, also for one that only
compiled code calls, and then again for each of its callers, with the function linked in. Routines
here are up to eight calls deep, and this was a third of the wait at first use. Under this compiler
a routine is translated and no more: its code is optimised and emitted as a part of its caller's.
"""

from collections.abc import Callable
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import codegen, compiler

# These have no types.
make_function: Any = _dynfunc.make_function
Compiler: Any = compiler.Compiler
JITCodeLibrary: Any = codegen.JITCodeLibrary


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into that of others."""

    def _optimize_final_module(self) -> None:
        """Leave it to the libraries that this one is linked into."""

    def _finalize_final_module(self) -> None:
        """Emit nothing: nothing asks for the address of a routine."""
        self._finalize_dynamic_globals()
        self._finalized = True


class LinkedCompiler(Compiler):  # type: ignore[misc]
    """The compiler of routines."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Translate a function, and let compiled code find it."""
        context, flags = self.state.targetctx, self.state.flags
        self.state.library = LinkedLibrary(context.codegen(), func.__qualname__)
        flags.no_compile = True
        compiled = super().compile_extra(func)
        # Callers are matched with what they call by its entry point: here one that leads nowhere.
        entry = make_function(
            compiled.fndesc.lookup_module(), func.__name__, "", 0, compiled.environment, ()
        )
        context.insert_user_function(entry, compiled.fndesc, [compiled.library])
        return compiled._replace(entry_point=entry)
