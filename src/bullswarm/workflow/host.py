"""The kernel's own process: it holds one run's lock, its durable engine and its mailbox.

``python -m bullswarm.workflow.host <home> <run id>``, started detached by the command line. It ends
when the run ends; killed at any moment, the next one goes on where it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.runs.app import App
from bullswarm.workflow import state as states
from bullswarm.workflow.carry import Carrier
from bullswarm.workflow.database import database_url
from bullswarm.workflow.events import CancelRequested, Event, encode_event
from bullswarm.workflow.folder import RunFolder
from bullswarm.workflow.listing import list_run

BUSY = 3
"""Exit code where another process carries this run already."""

MAIL_S = 0.1
END_S = 0.2


class Busy(Exception):
    """Another live process holds the run's lock."""


class Lock:
    """The run's lock: an open file description that dies with the process."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise Busy(str(path)) from error
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        self._file.close()


def is_carried(path: Path) -> bool:
    """Whether a live process holds the lock at ``path``."""
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def carry_run(home: str, run_id: str) -> int:
    """Carry one run until it ends. Returns the exit code."""
    app = App.open(home)
    folder = RunFolder(app.home.workflows / run_id)
    folder.check()
    try:
        lock = Lock(folder.lock)
    except Busy:
        print(f"run {run_id} is carried by another process already", file=sys.stderr)
        return BUSY
    folder.error_file.unlink(missing_ok=True)
    meta = folder.read_meta()
    carrier = Carrier(app, folder, meta)
    generation = _generation(folder, carrier)
    list_run(app, folder, carrier.meta, "running")
    try:
        phase = _engine(carrier, generation)
    except BullswarmError:
        raise
    except Exception as error:
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        traceback.print_exception(error)
        raise BullswarmError(f"the kernel's database can't be used: {why}") from error
    finally:
        lock.release()
    list_run(app, folder, carrier.meta, phase)
    return 0


def _generation(folder: RunFolder, carrier: Carrier) -> int:
    """The number of this opening: a run whose last opening has ended is opened anew where there is
    mail for it."""
    meta = carrier.meta
    state = folder.read_state()
    if state is not None and state.phase in states.ENDED and _finished(folder, meta.generation):
        meta = msgspec.structs.replace(meta, generation=meta.generation + 1)
        folder.write_meta(meta)
        carrier.meta = meta
    return meta.generation


def _finished(folder: RunFolder, generation: int) -> bool:
    return (folder.path / f"finished-{generation}").exists()


def _engine(carrier: Carrier, generation: int) -> str:
    from dbos import DBOS, DBOSConfig, SetWorkflowID

    from bullswarm.workflow import flows
    from bullswarm.workflow.line import Line

    for name in ("dbos", "dbos._logger", "sqlalchemy"):
        logging.getLogger(name).setLevel(logging.ERROR)
    run_id = carrier.meta.run_id
    url = database_url(os.environ) or f"sqlite:///{carrier.folder.database}"
    config: DBOSConfig = {
        "name": "bullswarm",
        "system_database_url": url,
        # One executor a run, so that recovery takes up this run's work and nobody else's. The name
        # of the machine is no part of it: that changes with the network.
        "executor_id": run_id,
        # Constant: a run must not be stranded by an upgrade.
        "application_version": "1",
        "log_level": "ERROR",
        "console_log_level": "ERROR",
        "run_admin_server": False,
        "notification_listener_polling_interval_sec": 0.05,
        "scheduler_polling_interval_sec": 3600.0,
    }  # type: ignore[typeddict-unknown-key]
    queue = f"run {run_id}"
    flows.use(carrier, queue)
    DBOS(config=config)
    DBOS.listen_queues([queue])
    if not carrier.folder.up_file.exists() and database_url(os.environ) is None:
        _register_queue(url, queue, flows.QUEUE_POLL_S)
    DBOS.launch()
    DBOS.register_queue(queue, polling_interval_sec=flows.QUEUE_POLL_S)
    flow_id = flows.run_id_of(carrier, generation)
    with SetWorkflowID(flow_id):
        # On this run's own queue: what is recovered without one goes to a queue that every process
        # on a shared database serves.
        handle = DBOS.enqueue_workflow(queue, flows.run_flow, run_id, generation)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    done = threading.Event()
    phases: list[str] = []

    def wait() -> None:
        try:
            phases.append(handle.get_result(polling_interval_sec=END_S))
        except Exception as error:
            flows.crash(error)
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    sent: set[str] = set()
    asked = 0
    Line(carrier, lambda event: _send(flow_id, event)).watch()
    up = False
    while not done.is_set():
        if not up and carrier.folder.state_file.exists():
            carrier.folder.up_file.write_text(f"{os.getpid()}\n")
            up = True
        if stop.is_set():
            # The workers go on; the next process finds them.
            os._exit(0)
        _deliver(carrier, flow_id, sent)
        asked = _pass_on_cancel(carrier, flow_id, asked)
        time.sleep(MAIL_S)
    flows.over()
    (carrier.folder.path / f"finished-{generation}").touch(mode=0o600)
    DBOS.destroy()
    return phases[0]


def _register_queue(url: str, name: str, poll_s: float) -> None:
    """In the run's own new file, before the engine is launched: a queue that it only finds later
    waits for a second."""
    from dbos import DBOSClient, run_dbos_database_migrations

    run_dbos_database_migrations(system_database_url=url)
    client = DBOSClient(system_database_url=url)
    try:
        client.register_queue(name, polling_interval_sec=poll_s)
    finally:
        client.destroy()


def _deliver(carrier: Carrier, flow_id: str, sent: set[str]) -> None:
    """What callers put into the mailbox, into the run's own durable one. A message stays until it
    was taken in: one that comes as the run ends is there for who opens the run again."""
    for _, event in carrier.folder.mail():
        if event.id not in sent:
            _send(flow_id, event)
            sent.add(event.id)


def _pass_on_cancel(carrier: Carrier, flow_id: str, asked: int) -> int:
    """``bullswarm cancel RUN`` ends the run as ``workflow cancel`` does."""
    run_id = carrier.meta.run_id
    level = carrier.app.store.cancel_level(run_id)
    if level > asked:
        event_id = f"cancel {level}"
        _send(flow_id, CancelRequested(id=event_id, at=carrier.app.now(), level=level))
    return max(level, asked)


def _send(flow_id: str, event: Event) -> None:
    from dbos import DBOS

    from bullswarm.workflow.flows import TOPIC

    DBOS.send(flow_id, encode_event(event).decode(), TOPIC, idempotency_key=f"{flow_id} {event.id}")


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m bullswarm.workflow.host HOME RUN_ID", file=sys.stderr)
        return 2
    try:
        return carry_run(argv[0], argv[1])
    except BullswarmError as error:
        print(f"kernel stopped: {error}", file=sys.stderr)
        with contextlib.suppress(BullswarmError, OSError):
            app = App.open(argv[0])
            RunFolder(app.home.workflows / argv[1]).error_file.write_text(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of the engine must not keep a finished kernel alive.
    os._exit(code)
