"""slurm.conf files as people write them, for property tests (Hypothesis).

A file is a list of pieces, so that a test knows without the code under test which bytes belong to which setting.
"""

from __future__ import annotations

import dataclasses
import re

from hypothesis import strategies as st

MAIN, SITE, MORE = "slurm.conf", "site.conf", "more.conf"


@dataclasses.dataclass(frozen=True)
class Piece:
    """One logical line: its bytes before the value, as the value is written, and behind it; key and value if it is a setting."""

    head: bytes
    written: bytes = b""
    tail: bytes = b""
    key: str = ""
    value: str = ""

    @property
    def raw(self) -> bytes:
        return self.head + self.written + self.tail


@dataclasses.dataclass(frozen=True)
class Sample:
    """The pieces of each file by name; MAIN includes the others."""

    pieces: dict[str, list[Piece]]

    def files(self, folder: str = "/etc/slurm") -> dict[str, bytes]:
        return {f"{folder}/{name}": b"".join(piece.raw for piece in pieces) for name, pieces in self.pieces.items()}

    def order(self, name: str = MAIN) -> list[tuple[str, int]]:
        """(file, number of the piece) of every setting, as Slurm reads them."""
        found = []
        for number, piece in enumerate(self.pieces[name]):
            if piece.key:
                found.append((name, number))
            elif piece.head.lower().startswith(b"include"):
                found += self.order(piece.value)
        return found

    def keys(self) -> list[str]:
        return sorted({self.pieces[name][number].key for name, number in self.order()})

    def places(self, key: str) -> list[tuple[str, int]]:
        return [(name, number) for name, number in self.order() if self.pieces[name][number].key == key]


# --- values: what Slurm takes for a key, and how scontrol shows it back -------------------------

NUMBERS = {
    "BatchStartTimeout": (1, 60000),
    "DefMemPerNode": (1, 1 << 40),
    "HealthCheckInterval": (0, 65000),
    "InactiveLimit": (0, 65000),
    "KillWait": (0, 65000),
    "MaxArraySize": (2, 4000000),
    "MaxJobCount": (10, 90000),
    "MaxStepCount": (1, 100000),
    "MinJobAge": (2, 100000),
    "ReturnToService": (0, 2),
    "SlurmdTimeout": (0, 65000),
    "TCPTimeout": (1, 60),
    "UnkillableStepTimeout": (60, 65000),
    "VSizeFactor": (0, 65000),
    "WaitTime": (0, 65000),
}
# Of 16 bits: no K behind them.
SHORT = {"BatchStartTimeout", "HealthCheckInterval", "InactiveLimit", "KillWait", "ReturnToService", "SlurmdTimeout", "TCPTimeout"}
SHORT |= {"UnkillableStepTimeout", "VSizeFactor", "WaitTime"}
TEXTS = ("MailDomain", "RebootProgram", "TmpFS", "UnkillableStepProgram")
BOOLEANS = ("DisableRootJobs", "TrackWCKey", "UsePAM")
KEYS = (*NUMBERS, *TEXTS, *BOOLEANS)

PLAIN = "abcXYZ019/._-+:,;%$()[]{}|&<>?!*'~^@作业é"


def numbers(key: str) -> st.SearchStrategy[str]:
    low, high = NUMBERS[key]
    number = st.integers(low, high)
    forms = [number.map(str), number.map(hex), number.map(lambda one: f"0{one:o}")]
    if key not in SHORT and high >= 1024:
        forms.append(st.integers(1, high // 1024).map(lambda one: f"{one}k"))
    return st.one_of(forms)


def values(key: str) -> st.SearchStrategy[str]:
    if key in NUMBERS:
        return numbers(key)
    if key in BOOLEANS:
        return st.sampled_from(["yes", "No", "TRUE", "false", "up", "DOWN", "1", "0"])
    word = st.text(PLAIN + "#\\", min_size=1, max_size=12).map(lambda text: "/" + text)
    return st.one_of(word, st.lists(word, min_size=2, max_size=3).map(" ".join))


# --- the same value in many spellings -----------------------------------------------------------

blanks = st.sampled_from([b"", b" ", b"\t", b"  "])
# Whatever a comment or an unreadable line may hold but the end of the line.
remark = st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"\xff"))


def any_case(word: str) -> st.SearchStrategy[str]:
    """The word with some of its letters in the other case: one bit a letter."""
    flips = st.integers(0, (1 << len(word)) - 1)
    return flips.map(lambda bits: "".join(one.swapcase() if bits >> place & 1 else one for place, one in enumerate(word)))


@st.composite
def settings_of(draw: st.DrawFn, key: str, eol: bytes) -> Piece:
    """One key with a value, in one of the spellings that Slurm takes."""
    value = draw(values(key))
    written = value.replace("\\", "\\\\").replace("#", "\\#").encode()
    if " " in value or draw(st.booleans()):
        written = b'"' + written + b'"'
    elif len(value) > 1 and value.isalnum() and value.isascii() and draw(st.integers(0, 5)) == 0:
        written = written[:1] + b"\\" + eol + written[1:]
    joint = draw(st.sampled_from([b"", b"", b"", b"\\" + eol + b"  "]))
    head = draw(blanks) + draw(any_case(key)).encode() + draw(blanks) + b"=" + draw(blanks) + joint
    tail = draw(st.one_of(blanks, remark.map(lambda text: b" #" + text), remark.map(lambda text: b"#" + text)))
    return Piece(head, written, tail + eol, key, value)


@st.composite
def remarks(draw: st.DrawFn, eol: bytes) -> Piece:
    """Comments, also such as look like settings, and empty lines."""
    text = draw(st.one_of(remark, st.sampled_from([b"KillWait=9", b" MailDomain = x", b"Include nowhere", b" SlurmdTimeout was 300"])))
    return Piece(draw(st.sampled_from([b"#" + text, b"  # " + text, b"", b" \t"])) + eol)


@st.composite
def records(draw: st.DrawFn, eol: bytes) -> Piece:
    """Lines of nodes and partitions; some keys of theirs have the names of global ones."""
    number = draw(st.integers(1, 10**6))
    line = draw(
        st.sampled_from(
            [
                b"NodeName=n%d NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000",
                b'NodeName=n%d NodeAddr=127.0.0.1 CPUs=2 Reason="KillWait=9 MailDomain=x"',
                b"PartitionName=p%d DefMemPerNode=77 DefaultTime=5",
                b"PartitionName=p%d \\" + eol + b"   DisableRootJobs=yes",
            ]
        )
    )
    return Piece(line % number + draw(blanks) + draw(st.sampled_from([b"", b" # KillWait=9"])) + eol)


@st.composite
def unreadable(draw: st.DrawFn, eol: bytes) -> Piece:
    """What Slurm refuses."""
    return Piece(b"!! " + draw(remark).replace(b"\\", b"/") + eol)


def _named_again(piece: Piece, names: set[bytes]) -> bool:
    """Whether the piece is the record of a thing in *names*; else it is added."""
    found = re.match(rb"(?:NodeName|PartitionName)=\w+", piece.head)
    again = found is not None and found.group() in names
    names.update([found.group()] if found else [])
    return again


@st.composite
def samples(draw: st.DrawFn, acceptable: bool = False, least: int = 0) -> Sample:
    """Files with one another included.

    :param acceptable: only what Slurm takes
    :param least: how many lines the main file has at least
    """
    eol: bytes = draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))
    # few keys, so that some are set twice
    pool = KEYS if acceptable else draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4))
    setting = st.sampled_from(pool).flatmap(lambda key: settings_of(key, eol))
    lines: list[st.SearchStrategy[Piece]] = [setting, setting, setting, remarks(eol), records(eol)]
    pieces = st.one_of(lines if acceptable else [*lines, unreadable(eol)])
    files = {
        MAIN: draw(st.lists(pieces, min_size=least, max_size=max(least, 4) * 2)),
        SITE: draw(st.lists(pieces, max_size=6)),
        MORE: draw(st.lists(pieces, max_size=4)),
    }
    if acceptable:
        names: set[bytes] = set()
        files = {name: [piece for piece in pieces_of if not _named_again(piece, names)] for name, pieces_of in files.items()}
    for parent, child in ((SITE, MORE), (MAIN, MORE), (MAIN, SITE)):
        # nor may a file with records be read twice
        if draw(st.booleans()) and not (acceptable and (parent, child) == (MAIN, MORE)):
            include = Piece(draw(any_case("include")).encode() + b" " + child.encode() + draw(blanks) + eol, value=child)
            files[parent].insert(draw(st.integers(0, len(files[parent]))), include)
    if not acceptable:
        if draw(st.booleans()):
            files[MAIN].insert(0, Piece(b"\xef\xbb\xbf# saved on Windows" + eol))
        if draw(st.booleans()) and files[MAIN]:  # no end of line at the end of the file
            last = files[MAIN][-1]
            part = "tail" if last.key else "head"
            files[MAIN][-1] = dataclasses.replace(last, **{part: getattr(last, part)[: -len(eol)]})
    return Sample(files)
