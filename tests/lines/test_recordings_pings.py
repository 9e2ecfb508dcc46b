"""Logs of programs that ping: of each the facts are known, and what is read has to be them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from redtail import lines
from redtail.errors import SpecError
from redtail.lines.recordings import fping, hrping, pings, unix, windows
from redtail.lines.recordings.echoes import Form

# Round trips in ms of requests 0 to 29; two were lost.
TRIPS = [12 + (n * 7) % 30 for n in range(30)]
LOST = (9, 20)

WINDOWS = {
    "english": ("Pinging {} with 32 bytes of data:", "Reply from {}: bytes=32 time={}ms TTL=57",
                "Request timed out."),
    "german": ("Ping wird ausgeführt für {} mit 32 Bytes Daten:",
               "Antwort von {}: Bytes=32 Zeit={}ms TTL=57", "Zeitüberschreitung der Anforderung."),
    "french": ("Envoi d’une requête 'Ping'  {} avec 32 octets de données :",
               "Réponse de {} : octets=32 temps={} ms TTL=57",
               "Délai d’attente de la demande dépassé."),
    "spanish": ("Haciendo ping a {} con 32 bytes de datos:",
                "Respuesta desde {}: bytes=32 tiempo={}ms TTL=57",
                "Tiempo de espera agotado para esta solicitud."),
    "portuguese": ("Disparando {} com 32 bytes de dados:",
                   "Resposta de {}: bytes=32 tempo={}ms TTL=57",
                   "Esgotado o tempo limite do pedido."),
    "italian": ("Esecuzione di Ping {} con 32 byte di dati:",
                "Risposta da {}: byte=32 durata={}ms TTL=57", "Richiesta scaduta."),
    "dutch": ("Pingen naar {} met 32 bytes aan gegevens:",
              "Antwoord van {}: bytes=32 tijd={} ms TTL=57", "Time-out bij opdracht."),
    "polish": ("Badanie {} z 32 bajtami danych:",
               "Odpowiedź z {}: bajtów=32 czas={}ms TTL=57", "Upłynął limit czasu żądania."),
    "czech": ("Příkaz PING na {} - 32 bajtů dat:",
              "Odpověď od {}: bajty=32 čas={}ms TTL=57", "Vypršel časový limit žádosti."),
    "russian": ("Обмен пакетами с {} по с 32 байтами данных:",
                "Ответ от {}: число байт=32 время={}мс TTL=57",
                "Превышен интервал ожидания для запроса."),
    "chinese": ("正在 Ping {} 具有 32 字节的数据:", "来自 {} 的回复: 字节=32 时间={}ms TTL=57",
                "请求超时。"),
    "japanese": ("{} に ping を送信しています 32 バイトのデータ:",
                 "{} からの応答: バイト数 =32 時間 ={}ms TTL=57",
                 "要求がタイムアウトしました。"),
    "korean": ("Ping {} 32바이트 데이터 사용:", "{}의 응답: 바이트=32 시간={}ms TTL=57",
               "요청 시간이 만료되었습니다."),
}  # fmt: skip
"""Per language the line above the answers, an answer, and the line of a request without one."""

PAGES = {"german": "cp850", "french": "cp850", "spanish": "cp850", "portuguese": "cp850",
         "polish": "cp852", "czech": "cp852", "russian": "cp866", "chinese": "gbk",
         "japanese": "cp932", "korean": "cp949"}  # fmt: skip
"""Code pages of the consoles, in which `ping > file` of cmd.exe writes."""

HOST = "192.0.2.1"


def windows_log(language: str) -> str:
    head, answer, lost = WINDOWS[language]
    rows = [lost if n in LOST else answer.format(HOST, trip) for n, trip in enumerate(TRIPS)]
    tail = [
        "", f"Ping statistics for {HOST}:",
        "    Packets: Sent = 30, Received = 28, Lost = 2 (6% loss),",
        "Approximate round trip times in milli-seconds:",
        "    Minimum = 12ms, Maximum = 41ms, Average = 26ms",
    ]  # fmt: skip
    return "\r\n".join(["", head.format(HOST), *rows, *tail, ""])


def encodings(language: str) -> dict[str, bytes]:
    text = windows_log(language)
    made = {
        "UTF-8": text.encode(),
        "UTF-8 with a mark": b"\xef\xbb\xbf" + text.encode(),
        "UTF-16": b"\xff\xfe" + text.encode("utf-16-le"),
        "UTF-16, high byte first": b"\xfe\xff" + text.encode("utf-16-be"),
    }
    if page := PAGES.get(language):
        made[page] = text.replace("’", "'").encode(page)
    return made


@pytest.mark.parametrize("language", WINDOWS)
def test_a_ping_of_windows_is_read_in_any_language_and_encoding(
    language: str, tmp_path: Path
) -> None:
    for encoding, content in encodings(language).items():
        file = tmp_path / "ping.txt"
        file.write_bytes(content)
        found = lines.estimate(file)
        assert found.form == "ping", encoding
        assert found.rtt.value == pytest.approx(0.012), encoding
        assert found.rtt.low is not None and found.rtt.low <= 0.011, "it is told in whole ms"
        assert found.rtt.high == pytest.approx(0.013), encoding
        assert found.down.loss.value == pytest.approx(2 / 30), encoding
        assert any("one ping a second is assumed" in text for text in found.cautions)


def test_requests_without_an_answer_stand_where_they_were(tmp_path: Path) -> None:
    rows = enumerate(windows_log("english").split("\r\n"), start=1)
    assert pings.read(rows, windows).lost_s == pytest.approx([9, 20])


def test_statistics_tell_what_empty_lines_hide(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    file.write_text(windows_log("english").replace("\r\n", "\n\n"))
    assert lines.estimate(file).down.loss.value == pytest.approx(2 / 30)
    file.write_text(windows_log("english") + windows_log("french"))
    assert lines.estimate(file).down.loss.value == pytest.approx(4 / 60)


def test_a_ping_of_windows_over_ipv6_and_of_less_than_a_millisecond(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    answers = ["Antwort von 2001:db8::1: Zeit<1ms" if n % 3 else "Antwort von 2001:db8::1: Zeit=2ms"
               for n in range(12)]  # fmt: skip
    file.write_text(
        "\n".join(["Ping wird ausgeführt für 2001:db8::1 mit 32 Bytes Daten:", *answers])
    )
    found = lines.estimate(file)
    assert found.rtt.text == "at most 1 ms"


def test_a_log_that_was_made_by_the_hosts_own_words_is_read(tmp_path: Path) -> None:
    """Iputils has many languages, too; words are not looked at."""
    file = tmp_path / "ping.log"
    file.write_text(
        "PING 192.0.2.1 (192.0.2.1) 56(84) Bytes an Daten.\n"
        + "".join(
            f"64 Bytes von 192.0.2.1: icmp_seq={n + 1} ttl=57 Zeit={trip}.4 ms\n"
            for n, trip in enumerate(TRIPS)
            if n not in LOST
        )
    )
    found = lines.estimate(file)
    assert found.rtt.value == pytest.approx(0.0124)
    assert found.down.loss.value == pytest.approx(2 / 30)


BSD = "64 bytes from 192.0.2.1: icmp_seq={n} ttl=57 time={ms}.412 ms"
MACOS_6 = "16 bytes from 2001:db8::1, icmp_seq={n} hlim=57 time={ms}.412 ms"
BUSYBOX = "64 bytes from 192.0.2.1: seq={n} ttl=57 time={ms}.412 ms"
SOLARIS = "64 bytes from host (192.0.2.1): icmp_seq={n}. time={ms}.412 ms"
PREFIXED = (
    "Sat Nov 14 09:12:{n:02} 2026: 64 bytes from 192.0.2.1: icmp_seq={n} ttl=57 time={ms}.412 ms"
)


@pytest.mark.parametrize("form", [BSD, MACOS_6, BUSYBOX, SOLARIS, PREFIXED])
def test_other_systems_print_the_same_with_other_words(form: str, tmp_path: Path) -> None:
    file = tmp_path / "ping.log"
    rows = [form.format(n=n, ms=ms) for n, ms in enumerate(TRIPS) if n not in LOST]
    file.write_text("\n".join(["PING 192.0.2.1: 56 data bytes", *rows]))
    found = lines.estimate(file)
    assert found.rtt.value == pytest.approx(0.012412)
    assert found.down.loss.value == pytest.approx(2 / 30)


def fping_log(dated: bool) -> str:
    rows = []
    for n, trip in enumerate(TRIPS):
        stamp = f"[{1_700_000_000 + 0.2 * n + trip / 1e3:.6f}] " if dated else ""
        told = "timed out" if n in LOST else f"64 bytes, {trip}.3 ms"
        rows.append(f"{stamp}192.0.2.1   : [{n}], {told} (26.1 avg, 3% loss)")
        rows.append(f"{stamp}198.51.100.7 : [{n}], {'timed out' if n > 12 else '64 bytes, 3.2 ms'}")
    return "\n".join(rows)


@pytest.mark.parametrize("dated", [True, False])
def test_fping_is_read_and_of_several_hosts_the_one_with_most_answers(
    dated: bool, tmp_path: Path
) -> None:
    file = tmp_path / "fping.log"
    file.write_text(fping_log(dated))
    found = lines.estimate(file)
    assert found.rtt.value == pytest.approx(0.0123)
    assert found.down.loss.value == pytest.approx(2 / 30)
    assert found.duration_s == pytest.approx(29 * (0.2 if dated else 1), abs=0.001)
    assert any("of 2 hosts; those of 192.0.2.1 are used" in text for text in found.cautions)


def test_the_table_of_fping_is_read(tmp_path: Path) -> None:
    file = tmp_path / "fping.log"
    trips = " ".join("-" if n in LOST else f"{trip}.3" for n, trip in enumerate(TRIPS))
    file.write_text(f"192.0.2.1 : {trips}\n")
    found = lines.estimate(file)
    assert found.rtt.value == pytest.approx(0.0123)
    assert found.down.loss.value == pytest.approx(2 / 30)


def test_hrping_counts_in_hexadecimal_and_has_times(tmp_path: Path) -> None:
    rows = ["Source address is 192.0.2.9; using ICMP echo-request, ID=2dc4"]
    for n, trip in enumerate(TRIPS):
        at = f"2026-11-14 23:59:{30 + n // 2:02}.{500 * (n % 2):03}"
        number = f"{(0xFFF8 + n) % 0x10000:04x}"
        rows.append(
            f"{at}: Timeout waiting for seq={number}" if n in LOST else
            f"{at}: From 192.0.2.1: bytes=60 seq={number} TTL=57 ID=2dc4 time={trip}.305ms"
        )  # fmt: skip
    file = tmp_path / "hrping.log"
    file.write_text("\n".join(rows))
    found = lines.estimate(file)
    assert found.rtt.value == pytest.approx(0.012305)
    assert found.down.loss.value == pytest.approx(2 / 30)
    assert found.duration_s == pytest.approx(14.5, abs=0.05)
    assert not any("no times" in text for text in found.cautions)


def test_answers_of_several_hosts_to_one_request_count_once() -> None:
    rows = [BSD.format(n=n // 3, ms=10 + n % 3) for n in range(60)]
    found = pings.read(enumerate(rows, start=1))
    assert len(found.trip_s) == 20 and found.trip_s.max() < 0.011


def _fping(number: str = "0", ms: str = "1.2") -> str:
    return f"192.0.2.1 : [{number}], 64 bytes, {ms} ms (1 avg, 0% loss)"


REFUSED: dict[str, tuple[Form, Callable[[], list[str]], str]] = {
    "few": (windows, lambda: windows_log("english").split("\r\n")[:9], "it has 7 answers"),
    "slow": (fping, lambda: [_fping(ms="9" * 30)], "line 1: the round trip is 1e[+]30 ms"),
    "many": (fping, lambda: [_fping("9" * 15)], "line 1: the sequence number is 1e[+]15"),
    "hosts": (
        fping,
        lambda: [f"h{n} : [0], timed out" for n in range(1001)],
        "line 1001: there are more than 1000 hosts",
    ),
    "date": (
        hrping,
        lambda: ["2026-13-14 10:00:00.0: From h: bytes=60 seq=0001 TTL=5 ID=1 time=1ms"],
        "line 1: '2026-13-14 10:00:00.0' is no time",
    ),
    "number": (unix, lambda: [BSD.format(n=70_000, ms=1)], "the sequence number is 70000"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_no_program_prints_are_refused(name: str) -> None:
    form, made, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        pings.read(enumerate(made(), start=1), form)


def test_long_lines_are_of_no_ping(tmp_path: Path) -> None:
    for line in ("1 bytes from seq=1 " * 4000, "1 a b icmp_seq=1 " * 4000, "=1 x=1 " * 9000):
        assert pings.form([line]) is None
    file = tmp_path / "long.log"
    file.write_text("x" * 200_000)
    with pytest.raises(SpecError, match="line 1: has more than 100000 bytes"):
        lines.estimate(file)
