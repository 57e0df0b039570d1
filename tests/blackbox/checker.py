"""What every caller was told, held against what the record says afterwards: each success told has exactly its rows, no
row stands without one, every single-use thing has one winner, and nothing lives after its ending was answered.
Callers may end without an answer; then, and only then, the record may say either."""

import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException


@dataclass
class Told:
    """One caller's exchange: what was attempted on which artifact, when, and the answer, or None without one."""

    intent: str
    artifact: str
    caller: int
    sent: float
    heard: float
    response: object
    rows: list = field(default_factory=list)

    @property
    def status(self):
        return self.response.status if self.response else None

    def json(self):
        return self.response.json() if self.response and self.response.body else {}

    @property
    def error(self):
        return self.json().get("error")


def row_of(kind, *, family=None, handle=None, by=None, of=None):
    """What identifies a row of the record."""
    return kind, family, handle, by, of


def as_row(row):
    author = row["author"] if isinstance(row["author"], str) else next(iter(row["author"].items()))
    entry = row["entry"]
    return row_of(row["kind"], family=row["family"], handle=row["handle"], by=author,
                  of=entry.get("resource_server") or entry.get("unit") or entry.get("summary"))


class Race:
    """Callers that start together, each at the replica its number says."""

    def __init__(self, owner, replicas, callers=32):
        self.owner, self.replicas, self.callers = owner, replicas, callers
        self.told, self._lock = [], threading.Lock()
        self.start = len(owner.ledger())

    @contextmanager
    def elsewhere(self, number):
        """In this block requests go to the replica of that caller."""
        with self.replicas(number % 2):
            yield

    def note(self, intent, artifact, caller, act):
        """Does it, and remembers what came of it."""
        sent = time.monotonic()
        try:
            response = act()
        except (OSError, HTTPException):
            response = None
        told = Told(intent, artifact, caller, sent, time.monotonic(), response)
        with self._lock:
            self.told.append(told)
        return told

    def run(self, plan):
        """`plan(number)` gives a caller's (intent, artifact, act), or a list of them to do in order."""
        barrier = threading.Barrier(self.callers)

        def caller(number):
            acts = plan(number)
            acts = acts if isinstance(acts, list) else [acts]
            with self.elsewhere(number):
                barrier.wait(20)
                return [self.note(intent, artifact, number, act) for intent, artifact, act in acts]

        with ThreadPoolExecutor(self.callers) as pool:
            return [told for many in pool.map(caller, range(self.callers)) for told in many]

    def of(self, intent):
        return [told for told in self.told if told.intent == intent]

    # ---- the laws --------------------------------------------------------------------------------------------------

    def one_winner(self, intent, won, lost):
        """Of everybody at one artifact exactly one was told yes, and the others no, in the words of `lost`."""
        at = defaultdict(list)
        for told in self.of(intent):
            at[told.artifact].append(told)
        winners = {}
        for artifact, callers in at.items():
            yes = [told for told in callers if told.response and won(told)]
            no = [told for told in callers if told.response and not won(told)]
            assert len(yes) == 1, f"{intent} of one thing was won {len(yes)} times among {summary(callers)}"
            assert all(lost(told) for told in no), summary(callers)
            winners[artifact] = yes[0]
        return winners

    def record(self):
        """Every row since the race began; places are counted without a gap."""
        rows = self.owner.ledger()
        assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1)), "the record has a gap"
        return rows[self.start:]

    def accounts(self, *, ignoring=()):
        """The rows of the record are those of the successes told, one for one. `ignoring` are kinds this race does not
        account for."""
        wrote = Counter(as_row(row) for row in self.record() if row["kind"] not in ignoring)
        owed = Counter(row for told in self.told if told.response for row in told.rows)
        maybe = Counter(row for told in self.told if not told.response for row in told.rows)
        missing, extra = owed - wrote, wrote - owed - maybe
        assert not missing, f"told, and not in the record: {dict(missing)}"
        assert not extra, f"in the record, and told to nobody: {dict(extra)}"

    def dead_after(self, ending, probe, alive):
        """Whoever asked after an ending was answered, anywhere, heard that it is dead."""
        ended = min(told.heard for told in self.of(ending) if told.status == 200)
        late = [told for told in self.of(probe) if told.sent > ended]
        lively = [told for told in late if alive(told)]
        assert not lively, f"{len(lively)} of {len(late)} found it alive after the owner was told it is not"
        return len(late)


def summary(callers):
    return Counter((told.status, str(told.error or told.json())[:60]) for told in callers)
