"""Runs the command blocks of README.md in order, as a reader with two terminals would.

The format. A fenced block whose info string starts with `console` is run; any other block is only read. In it

    $ command           is typed into a terminal; a line ending in a backslash goes on in the next one
    a line              must appear in the output (stdout and stderr together), after the lines shown before it;
                        lines the program prints in between need not be shown
    # a line            is a remark

In a shown line `…` stands for any text, and `<name>` for one word, which later commands can use as `<name>`
again. White space at line ends and its amount within lines do not matter. Words after `console` in the info string:

    term=NAME           which terminal (default `main`); each runs one command at a time, in its own shell
    running             the block's last command goes on after its shown lines appeared, beside the blocks that follow
    exit=N              the status of the block's last command (default 0); commands before it must end with 0
    skip                shown, not run

A block without a `$` line in a terminal where a command is still running shows more of that command's output, and waits
for its end unless it too says `running`. So does a new command: it waits for the one before. What still runs when the
document ends is interrupted (SIGINT) and must then end by itself. All terminals share an empty folder as working
directory and as HOME. `sayso` is the binary under test. A block of another language with `file=NAME` in its info
string is written to the working directory before anything is run; `python3` is the interpreter of these tests. The ports
the document names (8440, 8441, 8450, 8451) must be free."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cast import ROOT, binary

PATIENCE = 60
FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```console([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    term: str = "main"
    running: bool = False
    exit: int = 0
    steps: list = field(default_factory=list)  # (command or None, [shown lines])

    @classmethod
    def parse(cls, info, text):
        words, block = shlex.split(info), cls()
        if "skip" in words:
            return None
        for word in words:
            name, _, value = word.partition("=")
            if name not in ("term", "running", "exit"):
                raise ValueError(f"unknown word in a console block: {word}")
            setattr(block, name, True if name == "running" else int(value) if name == "exit" else value)
        lines = iter(text.splitlines())
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = command[:-1] + next(lines).lstrip("> ")
                block.steps.append((command, []))
            elif line.strip() and not line.startswith("#"):
                if not block.steps:
                    block.steps.append((None, []))
                block.steps[-1][1].append(line)
        return block


def blocks(markdown):
    parsed = [Block.parse(info, text) for info, text in FENCE.findall(markdown)]
    return [block for block in parsed if block]


class Terminal:
    """One shell at a time, its output gathered by a thread."""

    def __init__(self, folder, environment):
        self.folder, self.environment, self.process = folder, environment, None

    def type(self, command):
        self.lines, self.seen, self.command = [], 0, command
        self.process = subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=self.environment, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.reader = threading.Thread(target=self._read, args=(self.process.stdout, self.lines))
        self.reader.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line)

    def expect(self, shown, words):
        """Waits for each shown line in order; what `<name>` stood for goes into `words`."""
        deadline = time.monotonic() + PATIENCE
        for line in shown:
            pattern = pattern_of(line, words)
            while not (found := self._next(pattern)):
                ended = not self.reader.is_alive() and self.seen == len(self.lines)
                assert not ended and time.monotonic() < deadline, \
                    f"{self.command!r} never printed {line!r}, but:\n{''.join(self.lines)}"
                time.sleep(0.02)
            words |= found.groupdict()

    def _next(self, pattern):
        while self.seen < len(self.lines):
            self.seen += 1
            if found := pattern.search(squeezed(self.lines[self.seen - 1])):
                return found
        return None

    def finish(self, status=0):
        if self.process is None:
            return
        process, self.process = self.process, None
        try:
            ended = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"{self.command!r} did not end:\n{''.join(self.lines)}") from None
        self.reader.join(5)
        assert ended == status, f"{self.command!r} ended with {ended}:\n{''.join(self.lines)}"

    def interrupt(self):
        """Ctrl-C; a shell that was interrupted so may say 130."""
        if self.process is None:
            return
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.finish()
        except AssertionError as error:
            if "ended with 130" not in str(error) and "ended with -2" not in str(error):
                raise

    def abandon(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def squeezed(text):
    return " ".join(text.split())


def pattern_of(line, words):
    parts = re.split(r"(…|<[a-z_]+>)", squeezed(line))
    out = []
    for part in parts:
        name = part[1:-1] if re.fullmatch(r"<[a-z_]+>", part) else None
        if part == "…":
            out.append(".*")
        elif name is None:
            out.append(re.escape(part))
        else:
            out.append(re.escape(words[name]) if name in words else rf"(?P<{name}>\S+)")
    return re.compile("^" + "".join(out) + "$")


def run(document, folder, environment):
    for name, text in FILE.findall(document):
        (folder / name).write_text(text)
    terminals, words = {}, {}
    try:
        for block in blocks(document):
            terminal = terminals.setdefault(block.term, Terminal(folder, environment))
            for place, (command, shown) in enumerate(block.steps):
                last = place == len(block.steps) - 1
                if command is not None:
                    terminal.finish()
                    for name, value in words.items():
                        command = command.replace(f"<{name}>", value)
                    terminal.type(command)
                assert terminal.process is not None, f"nothing runs in terminal {block.term} to print {shown}"
                terminal.expect(shown, words)
                if not (last and block.running):
                    terminal.finish(block.exit if last else 0)
        for terminal in terminals.values():
            terminal.interrupt()
    finally:
        for terminal in terminals.values():
            terminal.abandon()
    return words


def test_the_readme(tmp_path):
    document = (ROOT / "README.md").read_text("utf-8")
    assert blocks(document), "README.md has no console blocks"
    for port in (8440, 8441, 8450, 8451):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                pytest.fail(f"port {port} is in use; README.md needs it")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "sayso").symlink_to(binary())
    home = tmp_path / "home"
    home.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SAYSO_", "XDG_"))}
    environment |= {"HOME": str(home), "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    run(document, home, environment)


SAMPLE = """
```console term=server running
$ echo ready on port 7; read -t 30 line < <(tail -f go 2>/dev/null); echo got $line; exit 3
ready   on port <port>
```
```sh
false
```
```console skip
$ false
```
```console
# two commands, the first with a line that is not shown
$ echo one; echo two; echo \\
> three
one
th…e
$ echo port <port> > go; sleep 0.1; exit 4
```
"""


def sample(tmp_path, text):
    (tmp_path / "go").touch()
    return run(text, tmp_path, dict(os.environ))


def test_the_runner(tmp_path):
    """What the format promises, with a shell in place of the program."""
    text = SAMPLE.replace("```console\n#", "```console exit=4\n#")
    more = "```console term=server exit=3\ngot port <port>\n```\n"
    assert sample(tmp_path, text + more) == {"port": "7"}


@pytest.mark.parametrize("text, complaint", [
    ("```console\n$ echo a\nb\n```\n", "never printed"),
    ("```console\n$ echo b; echo a\na\nb\n```\n", "never printed"),
    ("```console\n$ exit 1\n```\n", "ended with 1"),
    ("```console\na\n```\n", "nothing runs"),
])
def test_the_runner_complains(tmp_path, text, complaint):
    with pytest.raises(AssertionError, match=complaint):
        sample(tmp_path, text)
