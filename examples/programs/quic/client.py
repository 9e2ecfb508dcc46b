"""A QUIC client: it asks for bytes and prints their rate. `client.py ADDRESS PORT OUT BYTES`."""

import asyncio
import json
import ssl
import sys

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.logger import QuicFileLogger


async def main() -> None:
    """Download once."""
    address, port, out, size = sys.argv[1:]
    configuration = QuicConfiguration(
        alpn_protocols=["redtail"],
        verify_mode=ssl.CERT_NONE,  # the server signs its certificate itself
        quic_logger=QuicFileLogger(out),
    )
    now = asyncio.get_running_loop().time
    async with connect(address, int(port), configuration=configuration) as client:
        begin = now()
        reader, writer = await client.create_stream()
        writer.write(size.encode())
        writer.write_eof()
        received = len(await reader.read())
        seconds = now() - begin
    if received != int(size):
        sys.exit(f"{received} bytes came, and not {size}")
    told = {"bytes": received, "seconds": seconds, "goodput_bps": 8 * received / seconds}
    print(json.dumps(told))


asyncio.run(main())
