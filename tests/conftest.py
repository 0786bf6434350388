"""How hypothesis draws its examples."""

from hypothesis import settings

# The same examples in every run; `make test-portable` chooses seeds. No example is timed.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("seeded", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("fixed")
