"""A QUIC server: it answers a number with so many bytes. `server.py ADDRESS PORT OUT CONTROL`."""

import asyncio
import datetime
import signal
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicFileLogger
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec


class Server(QuicConnectionProtocol):
    """One connection."""

    def quic_event_received(self, event: QuicEvent) -> None:
        """Answer a request."""
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, bytes(int(event.data)), end_stream=True)
            self.transmit()


def certificate() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return a certificate that its own key has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "redtail")])
    begin = datetime.datetime(2000, 1, 1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin.replace(year=2100))
    return made.sign(key, hashes.SHA256()), key


async def main() -> None:
    """Serve until somebody asks the process to end."""
    address, port, out, control = sys.argv[1:]
    configuration = QuicConfiguration(
        is_client=False,
        alpn_protocols=["redtail"],
        congestion_control_algorithm=control,
        quic_logger=QuicFileLogger(out),
    )
    configuration.certificate, configuration.private_key = certificate()
    await serve(address, int(port), configuration=configuration, create_protocol=Server)
    end = asyncio.Event()  # after what is being written
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    await end.wait()


asyncio.run(main())
