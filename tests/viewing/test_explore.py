"""The live page: who may talk to it, what it is asked, and what it saves."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import numpy as np
import pytest
from commands import rewritelog as run
from faulty import HANGS_S
from logbuilder import bracket, seb, write_logs, write_params, write_timings

from rewritelog import Timings, load_model
from rewritelog.errors import OutputError, RewriteLogError, UsageError
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings, ModelText
from rewritelog.models.expressions import FormulaError
from rewritelog.models.fit_report import summarise
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.function import CorrectedFunction
from rewritelog.models.formulas import parse_formulas, parse_param_names
from rewritelog.timings.read import read_model_file, read_model_text, read_timings

pytest.importorskip("bokeh", reason="needs the extra [view]")

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from rewritelog.viewing.explorer import server
from rewritelog.viewing.explorer.processes import Processes
from rewritelog.viewing.explorer.requests import read_request
from rewritelog.viewing.explorer.server import Explorer
from rewritelog.viewing.explorer.session import (
    NOT_CHANGED,
    Changed,
    FitChoices,
    Result,
    Saving,
    Session,
    formulas_text,
)

AsyncHTTPClient.configure(None, defaults={"request_timeout": HANGS_S, "connect_timeout": HANGS_S})

LINES = [("sync", 1e-6 * n * math.log(n), float(n)) for n in range(2, 20)]
FORMULA = FitChoices(("1", "p1*log(p1)"))


def refit(event: Any, **changes: Any) -> dict[str, Any]:
    """The request to fit an event by the formula, with some changes."""
    return {"do": "fit", "event": event, "changed": {event: FORMULA.to_json() | changes}}


def session_of(folder: Path, *more: tuple[Any, ...]) -> Session:
    timings = write_timings(folder / "t.txt", *LINES, *more)
    return fitted_first(Session(read_timings([timings])))


def fitted_first(session: Session) -> Session:
    """A session all of whose first fits are there."""
    for number in session.numbers:
        session.keep(number, session.fit(number, session.first_choices[number]))
    return session


def result_of(session: Session, event: int, changed: Changed = NOT_CHANGED) -> Result:
    result = session.result(event, changed)
    assert result is not None
    return result


def changed_to(session: Session, event: int, choices: FitChoices) -> Changed:
    """What is changed if an event is fitted as chosen; it is."""
    session.keep(event, session.fit(event, choices))
    return {event: choices}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return session_of(tmp_path, ("other", 1e-6, 1.0), ("other", 2e-6, 2.0))


def number_of(session: Session, event: str) -> int:
    return next(k for k in session.numbers if session.events[k].event == event)


def converse(session: Session, talk: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Serve a session while `talk` is given its address."""

    with Explorer(session, Saving(Path("nowhere"), [], None)) as explorer:
        serving = Thread(target=explorer.serve_forever, args=(0.02,))
        serving.start()
        try:
            asyncio.run(talk(explorer.address))
        finally:
            explorer.shutdown()
            serving.join()


async def asked(address: str, request: Any, **headers: str) -> Any:
    """What the server answers to a request of its page."""
    named = {"Origin": address.rsplit("/", 2)[0]} | headers
    body = request if isinstance(request, str) else json.dumps(request)
    post = HTTPRequest(address, "POST", named, body)
    return json.loads((await AsyncHTTPClient().fetch(post)).body)


async def status(address: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        return (await AsyncHTTPClient().fetch(HTTPRequest(address, headers=named))).code
    except HTTPClientError as error:
        return error.code


def test_nothing_is_answered_without_the_token_or_to_strangers(session: Session) -> None:
    async def talk(address: str) -> None:
        origin, port = address.rsplit("/", 2)[0], address.split(":")[2].split("/", maxsplit=1)[0]
        assert address.startswith("http://127.0.0.1:")
        assert len(address.rsplit("/", 2)[1]) >= 43
        assert await status(address) == 200
        assert await status(f"{origin}/") == 404
        assert await status(f"{origin}/{'a' * 43}/") == 404
        assert await status(f"{origin}/{'a' * 43}/socket") == 404
        assert await status(f"{address}more") == 404
        for host in (f"evil.example:{port}", f"localhost:{port}", "127.0.0.1", "127.0.0.1:1"):
            assert await status(address, Host=host) == 403
        assert await status(address, Origin="http://evil.example") == 403
        assert await status(address, Origin="null") == 403
        assert await status(address, Sec_Fetch_Site="cross-site") == 403
        assert await status(address, Origin=origin) == 200

    converse(session, talk)


async def said_to(address: str, request: bytes) -> bytes:
    """What the server answers to bytes, until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.split(":")[2][:5]))
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def test_a_link_elsewhere_leads_to_the_page_and_shows_it_to_the_user_alone(
    session: Session,
) -> None:
    async def talk(address: str) -> None:
        link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
        assert await status(address, **link, Sec_Fetch_Dest="document") == 200
        assert await status(address, **link, Sec_Fetch_Dest="iframe") == 403
        assert await status(address, Sec_Fetch_Site="same-site", Sec_Fetch_Mode="cors") == 403

    converse(session, talk)


@pytest.mark.parametrize("line", ["GET x", "GET ?x", "OPTIONS *", "GET http://", "GET //x//"])
def test_an_odd_request_is_refused_and_leaves_no_traceback(
    line: str, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(address: str) -> None:
        host = address.split("/")[2]
        request = f"{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        answer = await said_to(address, request.encode())
        assert answer.startswith(b"HTTP/1.0 404 ")

    converse(session, talk)
    assert caplog.records == []


@pytest.mark.slow
def test_a_crowd_of_half_open_connections_keeps_nobody_out(
    session: Session, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_WAITING", 20)

    async def talk(address: str) -> None:
        port = int(address.split(":")[2].split("/", maxsplit=1)[0])
        page = AsyncHTTPClient().fetch(address)
        crowd = []
        for number in range(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n" if number % 2 else b"")
            crowd.append((reader, writer))
        assert (await page).code == 200
        assert await status(address) == 200
        ended = [asyncio.create_task(reader.read()) for reader, _ in crowd]
        await asyncio.wait(ended[:40])
        assert not any(task.done() for task in ended[41:])
        for _, writer in crowd:
            writer.close()

    converse(session, talk)
    (record,) = caplog.records
    assert "more than 20 connections to the page wait without a valid request" in record.message


@pytest.mark.parametrize(
    "begun", ["", "GET / HTTP/1.1\r\nHost: ", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"]
)
def test_who_says_nothing_more_is_not_waited_for(
    begun: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WAIT_S", 0.05)

    async def talk(address: str) -> None:
        await said_to(address, begun.encode())

    converse(session, talk)


@pytest.mark.parametrize("head", ["GET / HTTP/1.1\r\n" + f"X: {'y' * 300}\r\n" * 60, "G" * 20_000])
def test_of_an_endless_head_no_more_is_read(head: str, session: Session) -> None:
    async def talk(address: str) -> None:
        answer = await said_to(address, head[: server.MOST_HEAD_BYTES].encode())
        assert answer.endswith((b"400\n", b"403\n"))

    converse(session, talk)


def test_answers_say_how_long_they_are(session: Session) -> None:
    """One that is cut off when the server ends would else be taken for a whole one."""

    async def talk(address: str) -> None:
        page = await AsyncHTTPClient().fetch(address)
        assert page.headers["Content-Length"] == str(len(page.body))

    converse(session, talk)


def test_requests_are_taken_from_the_own_page_alone(session: Session) -> None:
    async def talk(address: str) -> None:
        origin = address.rsplit("/", 2)[0]
        port = origin.rsplit(":", 1)[1]
        for headers in (
            {}, {"Origin": "http://evil.example"}, {"Origin": f"http://localhost:{port}"},
            {"Origin": origin, "Host": f"evil.example:{port}"},
        ):  # fmt: skip
            with pytest.raises(HTTPClientError) as refused:
                await AsyncHTTPClient().fetch(HTTPRequest(address, "POST", headers, "{}"))
            assert refused.value.code == 403
        answer = await asked(address, "nonsense")
        assert answer["error"].startswith("the request is invalid: JSON is malformed")
        with pytest.raises(HTTPClientError) as refused:
            await asked(f"{origin}/{'a' * 43}/", {"do": "stop"})
        assert refused.value.code == 404

    converse(session, talk)


@pytest.mark.parametrize(("token", "accepted"), [(True, True), (False, False)])
def test_only_the_own_page_may_send_much(session: Session, token: bool, accepted: bool) -> None:
    async def talk(address: str) -> None:
        origin = address.rsplit("/", 2)[0]
        target = address if token else f"{origin}/{'a' * 43}/"
        head = f"POST /{target.split('/', 3)[3]} HTTP/1.1\r\nHost: {origin[7:]}\r\nOrigin: {origin}"
        length = f"Content-Length: {1 << 20}\r\nConnection: close\r\n\r\n"
        body = b'{"do": "stop"}' + b" " * ((1 << 20) - 14)
        answer = await said_to(
            address, f"{head}\r\n{length}".encode() + (body if accepted else b"")
        )
        assert (answer.startswith(b"HTTP/1.0 200 "), b"a fit" in answer) == (accepted, False)

    converse(session, talk)


def first_fit_of(event: int) -> dict[str, Any]:
    """The request to fit an event as at first."""
    return {"do": "fit", "event": event, "first": True}


@pytest.mark.slow
def test_events_are_fitted_as_by_the_command_when_the_page_asks(tmp_path: Path) -> None:
    lines = [(f"e{k}", 1e-6 * k * n, float(n)) for k in range(1, 5) for n in range(1, 9)]
    session = Session(read_timings([write_timings(tmp_path / "t.txt", *lines)]))

    async def talk(address: str) -> None:
        page = (await AsyncHTTPClient().fetch(HTTPRequest(address))).body.decode()
        assert '"fitted":[]' in page
        refused = {"error": "events are being fitted: wait for them, or stop the fit"}
        assert await asked(address, {"do": "save"}) == refused
        assert await asked(address, {"do": "save", "partial": True}) == refused
        first = await asked(address, first_fit_of(2))
        assert "e3(p1)" in first["row"]
        assert await asked(address, {"do": "save"}) == refused
        partial = await asked(address, {"do": "save", "partial": True})
        assert "nowhere" in partial["error"]  # there is no such folder
        answers = await asyncio.gather(*(asked(address, first_fit_of(k)) for k in (2, 0, 1, 3, 3)))
        assert answers[0]["row"] == first["row"]
        assert answers[3] == answers[4]
        page = (await AsyncHTTPClient().fetch(HTTPRequest(address))).body.decode()
        assert '"fitted":[0,1,2,3]' in page

    converse(session, talk)
    model = Auto(AutoOptions(), None).fit(session.timings.timings)
    table = np.array([[3.0], [50.0]])
    for number in session.numbers:
        event = session.events[number].event
        predicted = result_of(session, number).fit.predict(table)
        assert predicted.tobytes() == model.predict(event, table).tobytes()


def test_a_first_fit_that_fails_is_told_to_the_page(tmp_path: Path) -> None:
    """The server ended, and the page said only that it was gone."""
    timings = write_timings(tmp_path / "t.txt", *LINES, ("other", 1e-6, 1.0))
    session = Session(read_timings([timings]))
    fit_of, bad = session.fit, number_of(session, "other")

    def fit(event: int, choices: FitChoices) -> Result:
        if event == bad:
            raise UsageError(f"no fit of event {event}")
        return fit_of(event, choices)

    session.fit = fit  # type: ignore[method-assign]

    async def talk(address: str) -> None:
        assert await asked(address, first_fit_of(bad)) == {"error": f"no fit of event {bad}"}
        assert "row" in await asked(address, first_fit_of(1 - bad))

    converse(session, talk)


def test_errors_on_the_lines_of_a_fit_with_classes_are_those_of_all_of_them(
    tmp_path: Path,
) -> None:
    """R² was that of the class from which most errors come, beside the error of all lines."""
    n, kind = np.tile(np.arange(1.0, 41), 2), np.repeat([0.0, 1.0], 40)
    disturbed = np.where(kind > 0, np.tile([0.6, 1.4], 40), 1.0)
    seconds = 1e-6 * n * (1 + 9 * (1 - kind)) * disturbed
    lines = [("kinds", *map(float, row)) for row in zip(seconds, n, kind, strict=True)]
    session = session_of(tmp_path, *lines)
    event = number_of(session, "kinds")
    chosen = changed_to(session, event, FitChoices(("p1",), category="p2"))
    numbers = result_of(session, event, chosen).numbers(session.events[event])
    predicted = result_of(session, event, chosen).fit.predict(np.column_stack([n, kind]))
    unexplained, variation = (
        ((seconds - predicted) ** 2).sum(),
        ((seconds - seconds.mean()) ** 2).sum(),
    )
    assert numbers["R² on the lines of the fit"] == pytest.approx(1 - unexplained / variation)
    error = np.mean(np.abs(predicted - seconds) / seconds)
    assert numbers["mean error on the lines of the fit"] == pytest.approx(error)


def test_a_refit_is_told_to_the_page(session: Session) -> None:
    event = number_of(session, "sync")

    async def talk(address: str) -> None:
        wrong = await asked(address, refit(event, terms=["1", "p1*lg(p1)"]))
        assert wrong["error"].startswith("formula:2:4: ")
        first = await asked(address, {"do": "show", "event": event})
        refitted = await asked(address, refit(event))
        assert refitted["event"] == event
        assert refitted["state"]["numbers"]["R² on held-out lines"] == pytest.approx(1)
        assert refitted["state"]["choices"]["terms"] == list(FORMULA.terms)
        assert await asked(address, {"do": "show", "event": event}) == first
        assert await asked(address, {**refit(event), "do": "show"}) == refitted
        other = await asked(address, {**refit(event, left_out=[1, 2]), "do": "fit"})
        assert "2 left out" in other["verdict"][0]

    converse(session, talk)


EVENTS = [
    EventTimings("k", np.ones((lines, parameters)), np.ones(lines))
    for lines, parameters in ((20, 1), (3, 2))
]


@pytest.mark.parametrize(
    "message",
    [
        "", "[]", "{}", "[" * 100_000, '{"do": "shutdown"}', '{"do": "save", "more": 1}',
        {"do": "fit"}, {"do": "fit", "event": 2}, refit(0) | {"more": 1}, refit(0, more=1),
        refit(2), refit(True), refit(-1), refit(0, terms="p1"), refit(0, terms=[1]),
        refit(0, terms=["1"] * 101), refit(0, terms=["1" * 999]), refit(0, weights="heavy"),
        refit(0, loss=["huber"]), refit(0, left_out=[20]), refit(0, left_out=[0.5]),
        {"do": "fit", "event": 0, "changed": {"2": {}}}, {"do": "save", "changed": {"-1": {}}},
        {"do": "save", "changed": []}, {"do": "save", "partial": 1},
        {"do": "rewrite"}, {"do": "rewrite", "dilation": 0},
        {"do": "predict", "event": 0, "params": []},
        {"do": "show"}, {"do": "show", "event": 2}, {"do": "show", "event": 0, "more": 1},
        {"do": "predict", "event": 0, "params": ["1"]},
        {"do": "predict", "event": 0, "params": [True]},
        '{"do": "predict", "event": 0, "params": [NaN]}',
        '{"do": "predict", "event": 0, "params": [1e999]}',
        '{"do": "predict", "event": 0, "params": [1' + "0" * 400 + "]}",
    ],
)  # fmt: skip
def test_what_the_page_asks_is_validated(message: str | dict[str, Any]) -> None:
    text = message if isinstance(message, str) else json.dumps(message)
    with pytest.raises(UsageError):
        read_request(text.encode(), EVENTS)


def test_what_cannot_be_fitted_is_an_error(session: Session) -> None:
    event = number_of(session, "sync")
    with pytest.raises(UsageError, match="put some back"):
        session.fit(event, FitChoices(left_out=frozenset(range(len(LINES)))))
    with pytest.raises(FormulaError, match="formula:2:1: the term 'p1' is duplicated"):
        session.fit(event, FitChoices(("p1", "p1")))
    with pytest.raises(UsageError, match="a category needs a formula"):
        session.fit(event, FitChoices(category="p1"))


def test_what_is_saved_is_used_by_the_command_line_unchanged(tmp_path: Path) -> None:
    session = session_of(tmp_path, ("sync", 1.0, 5.0))
    event = number_of(session, "sync")
    choices = FitChoices(FORMULA.terms, left_out=frozenset({len(LINES)}))
    changed = changed_to(session, event, choices)
    (tmp_path / "saved").mkdir()
    saving = Saving(tmp_path / "saved", [tmp_path / "t.txt"], None)
    saving.save(session, changed)
    model = tmp_path / "saved/model.json"
    read = read_model_file(model)
    assert isinstance(read.raw, FittedEvents)
    assert read.raw.notes == (f"sync: left out of the fit: {tmp_path / 't.txt'}:{len(LINES) + 1}",)
    assert read.source.lines == len(LINES)
    params = np.array([[3.0], [7.5], [400.0]])
    expected = result_of(session, event, changed).fit.predict_detailed(params).seconds
    assert read.raw.predict("sync", params).tobytes() == expected.tobytes()
    logs = write_logs(tmp_path / "logs", [[seb(0, 2, events=bracket(0.5, 1.5))]])
    write_params(logs, 0, (0, "sync", 8))
    done = run("rewrite", logs, tmp_path / "out", "--fitted", model)
    assert done.returncode == 0, done.stderr
    kept = write_timings(tmp_path / "kept.txt", *LINES)
    again = tmp_path / "again.json"
    done = run("fit", kept, "--formulas", tmp_path / "saved/formulas.toml", "-o", again, "-q")
    assert done.returncode == 0, done.stderr
    same = read_model_file(again).raw.predict("sync", params)
    assert same.tobytes() == expected.tobytes()
    with pytest.raises(OutputError, match="exists"):
        Saving(tmp_path / "saved", [], None).save(session, changed)
    saving.save(session, changed)


def test_the_folder_is_made_before_the_work_begins(tmp_path: Path) -> None:
    assert not Saving(tmp_path / "a/b", [], None).refusal()
    assert (tmp_path / "a/b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file: is not a folder to save in"):
        Saving(tmp_path / "file", [], None).refusal()


def saved_in(folder: Path, session: Session, **more: Any) -> Callable[[], object]:
    """What saves model and formulas in a folder once more."""
    changed = changed_to(session, number_of(session, "sync"), FORMULA)
    saving = Saving(folder, [], None, **more)
    saving.save(session, changed)
    return lambda: saving.save(session, changed)


@pytest.mark.parametrize("name", ["model.json", "formulas.toml"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "file"])
def test_what_was_put_in_place_of_a_saved_file_is_not_replaced(
    name: str, kind: str, session: Session, tmp_path: Path
) -> None:
    saved, victim = tmp_path / "saved", tmp_path / "victim"
    saved.mkdir()
    save_again = saved_in(saved, session)
    (saved / name).rename(tmp_path / "kept")
    if kind != "dangling link":
        victim.write_text("mine")
    if kind == "hard link":
        (saved / name).hardlink_to(victim)
    elif kind == "file":
        (saved / name).write_text("mine")
    else:
        (saved / name).symlink_to(victim)
    with pytest.raises(OutputError, match=f"{name}: was replaced since it was saved; give another"):
        save_again()
    assert victim.exists() == (kind != "dangling link")
    assert kind == "dangling link" or (saved / name).read_text() == "mine"
    assert len(list(saved.iterdir())) == 2


@pytest.mark.parametrize("name", ["model.json", "formulas.toml"])
def test_a_link_where_a_file_is_saved_is_itself_replaced(
    name: str, session: Session, tmp_path: Path
) -> None:
    saved, victim = tmp_path / "saved", tmp_path / "victim"
    saved.mkdir()
    victim.write_text("mine")
    (saved / name).symlink_to(victim)
    with pytest.raises(OutputError, match=f"{name}: exists; give another"):
        saved_in(saved, session)
    saved_in(saved, session, force=True)
    assert victim.read_text() == "mine"
    assert not (saved / name).is_symlink()
    assert len((saved / name).read_text()) > 40


def test_saved_formulas_go_before_those_that_were_given(tmp_path: Path) -> None:
    name = 'odd "name" \\ é'
    lines = [(name, float(n), float(n)) for n in range(1, 6)]
    timings = write_timings(tmp_path / "t.txt", *lines, *LINES)
    file = tmp_path / "f.toml"
    file.write_text('[[formula]]\nevent = "sync"\nterms = ["p1"]\n')
    text = read_model_text(file)
    session = fitted_first(Session(read_timings([timings]), text))
    event = number_of(session, "sync")
    assert result_of(session, event).choices.terms == ("p1",)
    assert formulas_text(session, {}, text).endswith(text.text)
    changed = dict.fromkeys(session.numbers, FORMULA)
    saved = parse_formulas(formulas_text(session, changed, text), "saved")
    for entry in (saved.for_event("sync", 1), saved.for_event(session.events[1 - event].event, 1)):
        assert entry is not None
        assert [str(term) for term in entry.terms] == list(FORMULA.terms)


def test_work_is_stopped_and_its_errors_come_back() -> None:
    def fail() -> None:
        raise UsageError("no")

    def stop() -> None:
        while not processes.running:  # it stops what there is
            time.sleep(0.01)
        processes.stop()

    processes = Processes()
    assert processes.result(lambda: 6 * 7) == 42
    with pytest.raises(UsageError, match="no"):
        processes.result(fail)
    with pytest.raises(RewriteLogError, match="without a result"):
        processes.result(lambda: os._exit(3))
    Timer(0.1, stop).start()
    with pytest.raises(CancelledError):
        processes.result(lambda: time.sleep(600))
    Timer(0.1, processes.end).start()
    for _ in range(2):
        with pytest.raises(CancelledError):
            processes.result(lambda: time.sleep(600))


def test_a_page_can_stop_the_fit_that_it_asked_for(session: Session, tmp_path: Path) -> None:
    """The server did not read its next message before the fit was done."""
    begun = tmp_path / "begun"

    def fit(*_: object) -> None:
        begun.touch()
        time.sleep(600)

    session.fit = fit  # type: ignore[method-assign,assignment]

    async def talk(address: str) -> None:
        fitting = asyncio.create_task(asked(address, refit(0)))
        while not begun.exists():
            await asyncio.sleep(0.01)
        for request in (refit(0), {"do": "rewrite", "dilation": 1}):
            assert "a fit is in progress" in (await asked(address, request))["error"]
        assert await asked(address, {"do": "stop"}) == {}
        assert await fitting == {"stopped": True}

    converse(session, talk)


def test_predictions_are_those_of_the_fit(session: Session) -> None:
    event = number_of(session, "sync")
    changed = changed_to(session, event, FORMULA)
    prediction = session.predict(event, [50.0], changed)
    assert prediction["seconds"] == pytest.approx(1e-6 * 50 * np.log(50), rel=1e-6)
    assert prediction["by"] == "fit, outside the range of the lines"


def wait_long(event: int, choices: FitChoices) -> Result:
    """Take longer than a test waits."""
    time.sleep(600)
    raise UsageError(f"event {event} as {choices} was not stopped")


def test_first_fits_are_stopped(tmp_path: Path) -> None:
    lines = [(f"e{k}", 1e-6 * n, float(n)) for k in range(5) for n in range(1, 5)]
    session = Session(read_timings([write_timings(tmp_path / "t.txt", *lines)]))
    session.fit = wait_long  # type: ignore[method-assign]

    async def talk(address: str) -> None:
        fits = [asyncio.create_task(asked(address, first_fit_of(k))) for k in range(5)]
        while not all(fit.done() for fit in fits):
            assert await asked(address, {"do": "stop"}) == {}
        assert await asyncio.gather(*fits) == [{"stopped": True}] * 5

    converse(session, talk)


def test_the_end_of_the_server_stops_fits(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *LINES)
    session, begun = Session(read_timings([timings])), tmp_path / "begun"

    def fit(event: int, choices: FitChoices) -> Result:
        begun.touch()
        return wait_long(event, choices)

    session.fit = fit  # type: ignore[method-assign]

    async def talk(address: str) -> None:
        fitting = asyncio.create_task(asked(address, first_fit_of(0)))
        while not begun.exists():
            await asyncio.sleep(0.01)
        fitting.cancel()

    converse(session, talk)


def test_a_dilation_is_checked_before_the_fits(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *LINES)
    logs = write_logs(tmp_path / "logs", [[seb(0, 1)]])
    for words, problem in ((("--dilation", "2"), "needs --logs"),
                           (("--logs", logs, "--dilation", "0"), "dilation")):  # fmt: skip
        done = run("explore", timings, *words, "--no-browser")
        assert (done.returncode, problem in done.stderr, done.stdout) == (2, True, "")


@pytest.mark.slow
def test_a_refit_is_corrected_as_first_fits_are(tmp_path: Path) -> None:
    """To leave a line out, or to undo that, cost the fit its correction."""
    lines = [("wave", 1e-6 * n * (1.5 + math.sin(n / 9)), float(n)) for n in range(1, 200)]
    session = fitted_first(Session(read_timings([write_timings(tmp_path / "t.txt", *lines)])))
    assert isinstance(result_of(session, 0).fit.whole.function, CorrectedFunction)
    changed = changed_to(session, 0, FitChoices(left_out=frozenset({7})))
    assert isinstance(result_of(session, 0, changed).fit.whole.function, CorrectedFunction)


def test_a_formula_that_no_event_has_is_a_warning(tmp_path: Path) -> None:
    timings, file = write_timings(tmp_path / "t.txt", *LINES), tmp_path / "f.toml"
    file.write_text('[[formula]]\nevent = "snyc"\nterms = ["p1"]\n')
    session = Session(read_timings([timings]), read_model_text(file))
    assert ["'snyc'" in warning for warning in session.warnings] == [True]


def test_parameters_have_their_names_which_are_saved(tmp_path: Path) -> None:
    """Saved formulas had none, and reports of fits with them said p1."""
    timings = write_timings(tmp_path / "t.txt", *LINES)
    names = parse_param_names(ModelText("names.toml", '"sync" = ["pes"]\n'))
    session = fitted_first(Session(read_timings([timings]), None, names))
    assert session.view(0).label == "sync(pes)"
    saved = formulas_text(session, changed_to(session, 0, FORMULA), None)
    assert 'params = ["pes"]\nterms = [\n    "1",\n    "p1*log(p1)",\n]' in saved


def test_terms_may_call_parameters_by_their_names(tmp_path: Path) -> None:
    """The page showed the names, and said that they were unknown."""
    timings = write_timings(tmp_path / "t.txt", *LINES)
    names = parse_param_names(ModelText("names.toml", '"sync" = ["pes"]\n'))
    session = fitted_first(Session(read_timings([timings]), None, names))
    named = FitChoices(("1", "pes*log(pes)"), category="pes > 8")
    fits = [session.fit(0, choices).fit for choices in (named, FitChoices(FORMULA.terms, "p1 > 8"))]
    assert summarise(fits[0]) == summarise(fits[1])
    saved = parse_formulas(formulas_text(session, changed_to(session, 0, named), None), "saved")
    formula = saved.for_event("sync", 1)
    assert formula is not None
    assert [*map(str, formula.terms), str(formula.category)] == ["1", "p1*log(p1)", "p1 > 8"]


def test_a_formula_is_saved_for_its_event_alone(tmp_path: Path) -> None:
    """That of f<int*> was for f<int>, too."""
    lines = [(name, seconds, n) for name in ("f<int*>", "f<int>") for _, seconds, n in LINES]
    session = fitted_first(Session(read_timings([write_timings(tmp_path / "t.txt", *lines)])))
    changed = changed_to(session, number_of(session, "f<int*>"), FORMULA)
    saved = parse_formulas(formulas_text(session, changed, None), "saved")
    assert saved.for_event("f<int*>", 1) is not None
    assert saved.for_event("f<int>", 1) is None


def test_parameters_are_called_as_the_columns_of_a_frame(tmp_path: Path) -> None:
    """The page said p1, and the saved model did not know the column."""
    pd = pytest.importorskip("pandas")
    rows = [{"event": event, "pes": pes, "seconds": seconds} for event, seconds, pes in LINES]
    session = fitted_first(Session(Timings.from_frame(pd.DataFrame(rows))))
    assert session.view(0).label == "sync(pes)"
    Saving(tmp_path, [], None).save(session)
    saved = load_model(tmp_path / "model.json")
    assert saved.predict("sync", {"pes": 8}).tolist() == saved.predict("sync", [[8]]).tolist()


def test_columns_in_another_order_than_their_names_in_a_file_are_refused() -> None:
    """The page, and the model that it saved, took each for another."""
    X, y = np.arange(1.0, 9).reshape(4, 2), np.arange(1.0, 5)
    pd = pytest.importorskip("pandas")
    timings = Timings.from_arrays({"k": (pd.DataFrame(X, columns=["m", "n"]), y)})
    names = parse_param_names(ModelText("names.toml", 'k = ["n", "m"]\n'))
    text = ModelText("f.toml", '[[formula]]\nevent = "k"\nparams = ["n", "m"]\nterms = ["n"]\n')
    for given in ((text,), (None, names)):
        with pytest.raises(UsageError, match=r"parameters n, m, in this order, .* have m, n"):
            Session(timings, *given)


def test_names_without_an_event_are_told(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *LINES)
    names = parse_param_names(ModelText("names.toml", 'snyc = ["pes"]\n'))
    (warning,) = Session(read_timings([timings]), None, names).warnings
    assert "parameter names for 'snyc' are not used" in warning


def test_a_model_says_that_a_formula_is_not_used_any_more(tmp_path: Path) -> None:
    """The saved formulas, which keep it, give another fit than the saved model."""
    timings = write_timings(tmp_path / "t.txt", *LINES)
    text = ModelText("f.toml", '[[formula]]\nevent = "sync"\nterms = ["p1"]\n')
    session = fitted_first(Session(read_timings([timings]), text))
    assert session.model().notes == ()
    changed = changed_to(session, 0, FitChoices())
    assert text.text in formulas_text(session, changed, text)
    note = "sync: fitted without its formula, which formulas.toml keeps"
    assert session.model(changed).notes == (note,)
