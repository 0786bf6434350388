"""Draw the tutorial's figure anew, by running the page's own code: the picture cannot go stale."""

import os
import re
from pathlib import Path

here = Path(__file__).resolve().parent
page = (here.parent / "tutorial.md").read_text(encoding="utf-8")
os.chdir(here)  # the page saves its figure where it runs
os.environ["MPLBACKEND"] = "Agg"
exec("\n".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)))
