"""Who gets in, and how far."""

import subprocess
import sysconfig
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from metrack import Client
from metrack.client import ServeError
from metrack.serve.auth import Door
from metrack.serve.limits import Refused
from metrack.serve.tokens import Tokens, add_token, read_file

HEALTH = {"/healthz", "/readyz"}
PAGES = [
    "/",
    "/m/shop",
    "/m/shop/judge",
    "/static/style.css",
    "/openapi.json",
    "/nowhere",
    "/login",
]
ADDED = {"name": "shop", "file": "style.css"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("tokens") / "tokens.txt"


@pytest.fixture(scope="module")
def tokens(file):
    return {
        "all": add_token(file, "all", "read,write,admin", "*"),
        "read": add_token(file, "reader", "read", "*"),
        "write": add_token(file, "feeder", "write", "*"),
        "other": add_token(file, "other", "read,write,admin", "other"),
    }


@pytest.fixture(scope="module")
def guarded(spawner, tmp_path_factory, file, tokens):
    """A server with tokens, on all addresses, and a metric "shop"."""
    path = tmp_path_factory.mktemp("guarded") / "data"
    server = spawner.start(path, tokens=file, host="0.0.0.0").wait()
    with Client(server.url, tokens["all"]) as client:
        client.create("shop", 2)
        client.create("other", 2)
    yield server
    server.end()


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def routes(server, token):
    """Every route of the description, and the pages."""
    described = server.ask("GET", "/openapi.json", headers=bearer(token)).json()
    for path, methods in described["paths"].items():
        for method in methods:
            yield method.upper(), path.format(**ADDED)
    for path in PAGES:
        yield "GET", path


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer(""),
        {"authorization": "Basic YWRtaW46YWRtaW4="},
        {"cookie": "metrack_session=wrong"},
        {"cookie": 'metrack_session="\\"; a=b'},
    ],
)
def test_without_a_token_no_route_answers_but_health(guarded, tokens, headers):
    asked = 0
    for method, path in routes(guarded, tokens["all"]):
        status = guarded.ask(method, path, headers=headers).status
        assert status == (200 if path in HEALTH else 401), (method, path)
        asked += 1
    assert asked > 20


def test_with_a_token_for_another_metric_no_route_of_this_one_answers(guarded, tokens):
    for method, path in routes(guarded, tokens["all"]):
        if "shop" in path:
            status = guarded.ask(method, path, headers=bearer(tokens["other"])).status
            assert status == 403, (method, path)
    listed = guarded.ask("GET", "/v1/metrics", headers=bearer(tokens["other"])).json()
    assert [each["name"] for each in listed["metrics"]] == ["other"]
    figures = guarded.ask("GET", "/metrics", headers=bearer(tokens["other"])).body.decode()
    assert 'metric="other"' in figures
    assert 'metric="shop"' not in figures


def test_scopes(guarded, tokens):
    pair = {"pairs": [{"x": [1, 2], "z": [3, 4], "y": 1}]}
    unjudged = {"pairs": [{"x": [1, 2], "z": [3, 4]}]}

    def status(scope, method, path, body=None):
        return guarded.ask(method, f"/v1/metrics/shop{path}", body, bearer(tokens[scope])).status

    assert status("read", "POST", "/distance", unjudged) == 200
    assert status("read", "POST", "/feedback", pair) == 403
    assert status("read", "DELETE", "") == 403
    assert status("write", "POST", "/feedback", pair) == 200
    assert status("write", "POST", "/distance", unjudged) == 403
    assert status("write", "DELETE", "/log?upto=1") == 403
    assert status("all", "DELETE", "/log?upto=0") == 200


def test_replay_needs_the_right_to_read_the_source(guarded, tokens):
    answer = guarded.ask(
        "POST", "/v1/metrics/other/replay", {"source": "shop"}, bearer(tokens["other"])
    )
    assert answer.status == 403


def test_client_with_a_token(guarded, tokens):
    with Client(guarded.url, tokens["read"]) as client:
        assert client.describe("shop")["name"] == "shop"
    with Client(guarded.url, retries=0) as client, pytest.raises(ServeError, match="401"):
        client.describe("shop")


def test_page_asks_for_a_token_and_keeps_a_session(guarded, tokens):
    browser = {"accept": "text/html"}
    asked = guarded.ask("GET", "/m/shop", headers=browser)
    assert asked.status == 401
    assert b"<form" in asked.body
    assert "unsafe" not in asked.headers["content-security-policy"]
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert guarded.ask("POST", "/login", b"token=wrong", form).status == 401
    assert guarded.ask("POST", "/login", b"\xff=&&", form).status == 401
    entered = guarded.ask("POST", "/login", f"token={tokens['all']}".encode(), form)
    assert entered.status == 303
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    session = {"cookie": cookie.partition(";")[0]}
    assert tokens["all"] not in cookie
    assert guarded.ask("GET", "/", headers=browser | session).status == 200
    host = f"127.0.0.1:{guarded.port}"
    put = ("PUT", "/v1/metrics/by-page", {"n_features": 2})
    assert guarded.ask(*put, session | {"origin": "http://evil.example"}).status == 403
    assert guarded.ask(*put, session | {"origin": "null"}).status == 403
    assert guarded.ask(*put, session | {"sec-fetch-site": "cross-site"}).status == 403
    assert guarded.ask(*put, session | {"sec-fetch-site": "same-site"}).status == 403
    assert guarded.ask(*put, session | {"origin": f"http://{host}"}).status == 201
    login = f"token={tokens['all']}".encode()
    assert (
        guarded.ask("POST", "/login", login, form | {"origin": "http://evil.example"}).status == 403
    )


@pytest.mark.parametrize(
    ("path", "then"),
    [
        *(("/m/shop", "/m/shop"), ("/m/shop/judge", "/m/shop/judge"), ("/", "/")),
        *(("//evil.example", "/"), ("/v1/metrics", "/"), ("https://evil.example/m/shop", "/")),
        *(("/m/shop\r\nx: y", "/"), ("/m/../x", "/"), ("/m/shop?a=b", "/")),
    ],
)
def test_a_login_goes_on_to_the_page_that_was_asked_for(guarded, tokens, path, then):
    asked = guarded.ask("GET", "/m/shop/judge", headers={"accept": "text/html"})
    assert b'name="next" value="/m/shop/judge"' in asked.body
    assert b"Log in with a token." in asked.body
    form = {"content-type": "application/x-www-form-urlencoded"}
    body = urlencode({"token": tokens["all"], "next": path}).encode()
    answer = guarded.ask("POST", "/login", body, form)
    assert (answer.status, answer.headers["location"]) == (303, then)


def test_a_token_that_is_removed_is_revoked(spawner, tmp_path):
    file = tmp_path / "tokens.txt"
    kept, gone = (add_token(file, name, "read", "*") for name in ("kept", "gone"))
    server = spawner.start(tmp_path / "data", tokens=file).wait()
    assert server.ask("GET", "/v1/metrics", headers=bearer(gone)).status == 200
    file.write_text(file.read_text().splitlines(keepends=True)[0])
    end = time.monotonic() + 30
    while server.ask("GET", "/v1/metrics", headers=bearer(gone)).status == 200:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert server.ask("GET", "/v1/metrics", headers=bearer(kept)).status == 200
    server.end()


def test_without_tokens_only_this_machine_is_served(spawner, tmp_path):
    server = spawner.start(tmp_path / "data", host="0.0.0.0")
    while server.is_alive():
        time.sleep(0.01)
    assert "tokens are needed" in server.log.read_text()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""]
)
def test_without_tokens_other_names_are_refused(server, host):
    """A site whose name is made to point here must not read or write."""
    assert server.ask("GET", "/v1/metrics", headers={"host": host}).status == 421


def test_without_tokens_other_sites_are_refused(server):
    body = {"n_features": 2}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert server.ask("PUT", "/v1/metrics/csrf", body, headers).status == 403
    assert server.ask("GET", "/v1/metrics/csrf").status == 404


def test_answers_carry_a_strict_policy(server):
    for path in ("/", "/v1/metrics", "/static/style.css", "/nowhere"):
        headers = server.ask("GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_files_of_the_page_are_named_and_nothing_else_is_served(server):
    assert server.ask("GET", "/static/style.css").status == 200
    for name in ("../auth.py", "..%2Fauth.py", "%2e%2e/auth.py", "index.html", "", "style.css/"):
        assert server.ask("GET", f"/static/{name}").status in (404, 307)


@pytest.mark.parametrize("path", ["/m/nope", "/m/nope/judge", "/nowhere", "/static/nope.js"])
def test_a_browser_is_told_on_a_page_what_is_not_there(server, path):
    answer = server.ask("GET", path, headers={"accept": "text/html,*/*;q=0.8"})
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "style-src 'sha256-" in answer.headers["content-security-policy"]
    assert b'<a href="/">All metrics</a>' in answer.body
    assert ("there is no metric" in answer.body.decode()) == path.startswith("/m/")
    assert "detail" in server.ask("GET", path).json()
    described = server.ask("GET", "/v1/metrics/nope", headers={"accept": "text/html"})
    assert "there is no metric" in described.json()["detail"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no token"),
        ("a read *\n", ":1: expected"),
        ("# comment\na read * 123\n", ":2: expected"),
        (f"a fly * {'0' * 64}\n", "scopes 'fly'"),
        (f"a read * {'0' * 64} soon\n", "'soon' is no time"),
    ],
)
def test_wrong_token_files_are_refused(tmp_path, text, words):
    file = tmp_path / "tokens.txt"
    file.write_text(text)
    with pytest.raises(ValueError, match=words):
        Tokens(file)


def test_command_makes_tokens_of_which_only_digests_are_kept(tmp_path):
    command = [Path(sysconfig.get_path("scripts")) / "metrack", "token", tmp_path / "t.txt", "ann"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    token = done.stdout.strip()
    assert len(token) >= 40
    assert token not in (tmp_path / "t.txt").read_text()
    assert (tmp_path / "t.txt").stat().st_mode & 0o077 == 0
    wrong = subprocess.run([*command, "--scopes", "fly"], capture_output=True, text=True)
    assert wrong.returncode == 2


@pytest.mark.parametrize("metrics", ["../../etc", "shop,../etc", "shop,", "a/b", "**"])
def test_tokens_are_for_metrics_that_there_can_be(tmp_path, metrics):
    with pytest.raises(ValueError, match="can be no metric's name"):
        add_token(tmp_path / "t.txt", "ann", "read", metrics)
    assert not (tmp_path / "t.txt").exists()
    assert add_token(tmp_path / "t.txt", "ann", "read", "shop,films-2.0")


def metrack_command(*arguments):
    command = [Path(sysconfig.get_path("scripts")) / "metrack", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_tokens_are_listed_and_withdrawn(spawner, tmp_path):
    file = tmp_path / "tokens.txt"
    assert metrack_command("tokens", file).returncode == 1  # there is no such file
    kept = add_token(file, "kept", "read", "shop")
    gone = [add_token(file, "gone", "read", "*"), add_token(file, "gone", "read,admin", "*", 30)]
    file.write_text(f"# of the team\n\n{file.read_text()}")
    listed = metrack_command("tokens", file).stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["gone", "gone", "kept"]
    assert "never expires" in listed
    assert "expires 20" in listed
    assert not any(token in listed for token in (kept, *gone))
    server = spawner.start(tmp_path / "data", tokens=file).wait()
    session = server.ask("POST", "/login", f"token={gone[0]}".encode()).headers["set-cookie"]
    cookie = {"cookie": session.partition(";")[0]}
    assert server.ask("GET", "/v1/metrics", headers=cookie).status == 200
    assert metrack_command("tokens", file, "--withdraw", "gone").stdout == "withdrawn: 2 of gone\n"
    assert file.read_text().startswith("# of the team\n")
    assert file.stat().st_mode & 0o077 == 0
    end = time.monotonic() + 30
    while server.ask("GET", "/v1/metrics", headers=bearer(gone[1])).status == 200:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert server.ask("GET", "/v1/metrics", headers=cookie).status == 401  # its session, too
    assert server.ask("GET", "/v1/metrics", headers=bearer(kept)).status == 200
    again = metrack_command("tokens", file, "--withdraw", "gone")
    assert again.returncode == 2
    assert "no token of 'gone'" in again.stderr
    server.end()


def test_a_token_expires(tmp_path, monkeypatch):
    token = add_token(tmp_path / "t.txt", "ann", "read", "*", days=2)
    door, headers = Door(Tokens(tmp_path / "t.txt")), bearer(token)
    assert door.identify("GET", headers).name == "ann"
    session = door.log_in(token, {})
    cookie = {"cookie": f"metrack_session={session}"}
    assert door.identify("GET", cookie).name == "ann"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * 86400 + 1)
    for wrong in (headers, cookie):
        with pytest.raises(Refused, match="token of ann has expired") as caught:
            door.identify("GET", wrong)
        assert caught.value.status == 401
    with pytest.raises(Refused, match="has expired"):
        door.log_in(token, {})
    (entry,) = read_file(tmp_path / "t.txt")
    assert "expired 20" in entry.described()


@pytest.mark.parametrize("days", [0, -1, float("nan"), 1e9])
def test_tokens_last_for_some_days(tmp_path, days):
    with pytest.raises(ValueError, match="for some days"):
        add_token(tmp_path / "t.txt", "ann", "read", "*", days)
