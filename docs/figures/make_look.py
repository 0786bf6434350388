"""Draw docs/figures/look.png by the code of docs/how-to/look.md itself.

python -m docs.figures.make_look
"""

import os
import re
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

HERE = Path(__file__).resolve().parent
CODE = re.compile(r"<!-- code -->\n```python\n(.*?)```", re.DOTALL)

if __name__ == "__main__":
    namespace = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        page = HERE.parent / "how-to" / "look.md"
        exec(CODE.search(page.read_text(encoding="utf-8"))[1], namespace)
        namespace["figure"].savefig(HERE / "look.png", dpi=80, metadata={"Software": None})
        os.chdir(HERE)
