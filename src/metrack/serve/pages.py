"""The pages: files of this package, and two small ones for browsers that cannot have these."""

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files

CSS, JS = "text/css; charset=utf-8", "text/javascript; charset=utf-8"
SCRIPTS = (
    *("common", "charts", "tables", "words", "faces"),  # what pages share
    *("index", "new"),
    *("metric", "course", "around", "files"),
    *("judge", "queue", "pairs", "review", "differences", "progress"),
)
STATIC = {"style.css": CSS, **{f"{name}.js": JS for name in SCRIPTS}}
LOGIN_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem; }
input, button { font: inherit; padding: 0.5rem; margin: 0.3rem 0; width: 100%;
  box-sizing: border-box; }
"""


@cache
def file(name: str) -> bytes:
    """A file of this package."""
    return (files("metrack.serve") / "static" / name).read_bytes()


def login(message: str, path: str) -> tuple[str, str]:
    """A page that asks for a token and then goes on to a path; and its content security policy."""
    form = (
        '<form method="post" action="/login"><label>Token <input type="password" name="token" '
        'autocomplete="current-password" required autofocus></label>\n'
        f'<input type="hidden" name="next" value="{html.escape(path)}">'
        "<button>Log in</button></form>"
    )
    return _small("token", message, form)


def problem(message: str) -> tuple[str, str]:
    """A page that says what is wrong, and its content security policy."""
    return _small("problem", message, '<p><a href="/">All metrics</a></p>')


def _small(title: str, message: str, more: str) -> tuple[str, str]:
    digest = base64.b64encode(hashlib.sha256(LOGIN_STYLE.encode()).digest()).decode()
    page = (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>metrack: {title}</title>\n<style>{LOGIN_STYLE}</style></head>\n"
        f"<body><main><h1>metrack</h1>\n<p>{html.escape(message)}</p>\n{more}</main></body>\n</html>\n"
    )
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    return page, policy
