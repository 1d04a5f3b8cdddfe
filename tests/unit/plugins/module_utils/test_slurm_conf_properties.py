"""What holds for every slurm.conf, whatever people wrote: nothing raises, and an edit changes nothing but what it means to."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ansible_collections.hpcguard.slurm.plugins.module_utils import finding, slurm_conf, slurm_conf_edit, slurm_conf_keys, slurm_conf_lint
from ansible_collections.hpcguard.slurm.tests import slurm_conf_texts as texts

MAIN = "/etc/slurm/slurm.conf"
RELEASE = (22, 5)
BOUNDED = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(BOUNDED, max_examples=300)

key_and_value = st.sampled_from(texts.KEYS).flatmap(lambda key: st.tuples(st.just(key), texts.values(key)))


@st.composite
def samples_and_keys(draw: st.DrawFn) -> tuple[texts.Sample, str]:
    """Files, and a key that most of them set."""
    sample = draw(texts.samples())
    return sample, draw(st.sampled_from([*sample.keys(), *sample.keys(), "KillWait"]))


# Bytes that mean something to the parser, in any order.
SIGNS = [b"\\", b"\n", b"\r\n", b"#", b'"', b"=", b" ", b"\t", b"\0", b"\xef\xbb\xbf", b"\xff", b"%c"]
WORDS = [b"Include ", b"slurm.conf", b"a.conf", b"ClusterName=X", b"KillWait", b"30", b"NodeName=a", b"CPUs", b"MailDomain=x"]
tokens = st.sampled_from([*SIGNS, *WORDS])
any_bytes = st.one_of(st.binary(max_size=200), st.lists(tokens, max_size=30).map(b"".join))


def parse(files: dict[str, bytes]) -> slurm_conf.Conf:
    return slurm_conf.parse(MAIN, files.get, RELEASE)


def contents(conf: slurm_conf.Conf) -> dict[str, bytes]:
    return {path: slurm_conf.to_bytes(text) for path, text in conf.files.items()}


@BOUNDED
@given(texts.samples())
def test_the_last_setting_in_reading_order_is_in_force(sample: texts.Sample) -> None:
    conf = parse(sample.files())
    for key in texts.KEYS:
        places = sample.places(key)
        told = conf.value(key)
        assert (None if told is None else slurm_conf.readable(told)) == (
            sample.pieces[places[-1][0]][places[-1][1]].value if places else None
        ), key


@BOUNDED
@given(samples_and_keys(), st.data())
def test_setting_one_key_leaves_every_other_byte(drawn: tuple[texts.Sample, str], data: st.DataObject) -> None:
    sample, key = drawn
    value = slurm_conf.stored(data.draw(texts.values(key)))
    before = parse(sample.files())
    after, edits = slurm_conf_edit.plan(before, [(key, value)])
    now, places = contents(after), sample.places(key)
    assert slurm_conf.same_value(key, after.value(key), value, RELEASE)
    assert slurm_conf_edit.plan(after, [(key, value)])[1] == [], "twice is once"

    if not edits:
        event("as it was")
        assert now == contents(before)
    elif not places:
        event("new")
        old, new = contents(before), now
        assert [path for path in old if old[path] != new[path]] == [MAIN]
        assert inserted(old[MAIN], new[MAIN], key.encode())
    else:
        event("changed")
        name, number = places[-1]
        assert [path for path in now if now[path] != sample.files()[path]] == [f"/etc/slurm/{name}"]
        pieces = sample.pieces[name]
        superseded = {other for place, other in places if place == name and other != number}
        raws = [re.sub(b"(?m)^(?=[\\s\\S])", b"#", one.raw) if other in superseded else one.raw for other, one in enumerate(pieces)]
        start = b"".join(raws[:number]) + pieces[number].head
        end = pieces[number].tail + b"".join(raws[number + 1 :])
        text = now[f"/etc/slurm/{name}"]
        assert text.startswith(start) and text.endswith(end) and len(text) > len(start) + len(end)


def inserted(old: bytes, new: bytes, key: bytes) -> bool:
    """Whether *new* is *old* with one more line, which sets the key."""
    for match in re.finditer(rb"(?<![^\n])" + re.escape(key) + rb"=[^\n]*\n", new):
        for start in {match.start(), match.start() - 1, match.start() - 2}:  # with the end of line that the last line lacked
            if start >= 0 and new[start : match.start()].strip(b"\r\n") == b"" and new[:start] + new[match.end() :] == old:
                return True
    return False


@BOUNDED
@given(samples_and_keys())
def test_removing_a_key_takes_its_lines_and_nothing_else(drawn: tuple[texts.Sample, str]) -> None:
    sample, key = drawn
    before = parse(sample.files())
    after, _edits = slurm_conf_edit.plan(before, [(key, None)])
    assert after.value(key) is None
    assert slurm_conf_edit.plan(after, [(key, None)])[1] == []
    for path, text in contents(after).items():
        pieces = sample.pieces[path.rpartition("/")[2]]
        assert text == b"".join(piece.raw for piece in pieces if piece.key != key)


@MANY
@given(any_bytes, any_bytes, st.sampled_from([(20, 11), (22, 5), (24, 11), (26, 5)]))
def test_any_bytes_can_be_read_judged_and_shown(main: bytes, other: bytes, release: tuple[int, int]) -> None:
    conf = slurm_conf.parse(MAIN, {MAIN: main, "/etc/slurm/a.conf": other}.get, release)
    for path in conf.paths:
        assert "".join(line.raw for line in slurm_conf.split(path, conf.files[path])) == conf.files[path]
    found = slurm_conf_lint.lint(conf, slurm_conf_lint.Host("c1", plugins=set()))
    assert all(finding.clean_text(line, 4000) == line for line in finding.describe(found))
    for path in conf.paths:
        slurm_conf.masked_file(conf, path)


@MANY
@given(
    st.sampled_from([b"", b" ", b"NodeName=a ", b"NodeName=a and ", b"KillWait=3 ", b"prose ", b"Include x "]),
    st.sampled_from(slurm_conf_keys.SECRETS).flatmap(texts.any_case),
    st.sampled_from([b"=", b" = ", b"+=", b":", b" ", b"=\\\n", b'="', b"= #"]),
    st.sampled_from([b"", b"a", b"\\#", b"'", b"$("]),
    st.sampled_from([b"", b"\n", b'"\n', b" more\n", b" # remark\r\n", b"\0\n", b"\\\n"]),
)
def test_no_finding_shows_a_secret(before: bytes, key: str, sign: bytes, start: bytes, after: bytes) -> None:
    text = b"ClusterName=x\nSlurmctldHost=c1\n" + before + key.encode() + sign + start + b"swordfish" + after
    found = slurm_conf_lint.lint(parse({MAIN: text + text}), slurm_conf_lint.Host("c1", plugins=set()))
    assert "swordfish" not in str(found)


@MANY
@given(any_bytes, any_bytes, key_and_value)
def test_an_edit_of_any_bytes_does_what_it_says_or_refuses(main: bytes, other: bytes, wanted: tuple[str, str]) -> None:
    key, value = wanted[0], slurm_conf.stored(wanted[1])
    conf = parse({MAIN: main, "/etc/slurm/a.conf": other})
    try:
        after, _edits = slurm_conf_edit.plan(conf, [(key, value)])
    except ValueError:
        event("refused")
        return
    assert slurm_conf.same_value(key, after.value(key), value, RELEASE)
    assert {name: told for name, told in after.effective().items() if name != key} == {
        name: told for name, told in conf.effective().items() if name != key
    }
