//! quinn's QUIC as an endpoint of redtail: a server that sends a file, and a client that asks for it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, EndpointConfig,
    Event, ReadError, ServerConfig, StreamEvent, StreamId, TransportConfig, WriteError,
};
use redtail_core::Ecn;
use redtail_core::plugin::{Identity, PluginError};
use redtail_sim::{Datagram, Endpoint, EndpointContext, EndpointSide, Plugins};

use crate::plain::Plain;

const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// What the client asks for.
const REQUEST: &[u8] = b"GET /\r\n";

/// Bytes that the server writes at once.
const BLOCK: usize = 64 * 1024;

/// An end of a download over one QUIC connection.
struct Quic {
    side: EndpointSide,
    stack: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    client: ClientConfig,
    /// quinn wants an [`Instant`]; what it does depends on differences only.
    epoch: Instant,
    /// Datagrams that the stack has answered with, before there was a connection.
    answers: Vec<Vec<u8>>,
    buffer: Vec<u8>,
    stream: Option<StreamId>,
    /// Bytes of the file that have not been written.
    unwritten: u64,
    /// Bytes of the file that have been read.
    delivered: u64,
    /// When the last byte was read.
    finished: Option<Duration>,
    /// Datagrams that arrived with CE.
    marked: u64,
}

fn failed(what: &str, why: impl std::fmt::Debug) -> PluginError {
    PluginError::new(format!("{what}: {why:?}"))
}

impl Quic {
    /// `params.control` is `"cubic"` or `"bbr"`, and `params.size` the bytes of the file.
    fn new(identity: &Identity, mut context: EndpointContext) -> Result<Self, PluginError> {
        let control: Arc<dyn ControllerFactory + Send + Sync> =
            match identity.params.get("control").and_then(|it| it.as_str()) {
                Some("cubic") => Arc::new(CubicConfig::default()),
                Some("bbr") => Arc::new(BbrConfig::default()),
                _ => {
                    return Err(PluginError::new(
                        "params.control is neither \"cubic\" nor \"bbr\"",
                    ));
                }
            };
        let size = identity.params.get("size").and_then(|it| it.as_f64());
        let size = size.ok_or_else(|| PluginError::new("params.size is no number of bytes"))?;
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(control);
        transport.max_idle_timeout(None);
        let transport = Arc::new(transport);
        let mut server = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
        server.transport_config(Arc::clone(&transport));
        let mut client = ClientConfig::new(Arc::new(Plain));
        client.transport_config(transport);
        let mut endpoint = EndpointConfig::new(Arc::new(Plain));
        endpoint.rng_seed(Some(context.seed()));
        let is_server = context.side == EndpointSide::Sender;
        let server = is_server.then(|| Arc::new(server));
        Ok(Self {
            side: context.side,
            stack: quinn_proto::Endpoint::new(Arc::new(endpoint), server, true, None),
            connection: None,
            client,
            epoch: Instant::now(),
            answers: Vec::new(),
            buffer: Vec::new(),
            stream: None,
            unwritten: size as u64,
            delivered: 0,
            finished: None,
            marked: 0,
        })
    }

    fn at(&self, now: Duration) -> Instant {
        self.epoch + now
    }

    /// The stack has written `size` bytes of an answer into the buffer.
    fn answer(&mut self, size: usize) {
        self.answers.push(self.buffer[..size].to_vec());
    }

    /// Carries out what the connection has for the stack and for the application.
    fn drive(&mut self, now: Duration) -> Result<(), PluginError> {
        let Some((handle, mut connection)) = self.connection.take() else {
            return Ok(());
        };
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.stack.handle_event(handle, event) {
                    connection.handle_event(answer);
                }
            }
            let Some(event) = connection.poll() else {
                break;
            };
            match event {
                Event::ConnectionLost { reason } if self.side == EndpointSide::Receiver => {
                    return Err(failed("the connection is lost", reason));
                }
                Event::Connected if self.side == EndpointSide::Receiver => {
                    let stream = connection.streams().open(Dir::Bi);
                    let stream = stream.ok_or_else(|| PluginError::new("no stream is allowed"))?;
                    let mut sending = connection.send_stream(stream);
                    let written = sending
                        .write(REQUEST)
                        .map_err(|error| failed("write", error))?;
                    debug_assert_eq!(written, REQUEST.len());
                    sending.finish().map_err(|error| failed("finish", error))?;
                    self.stream = Some(stream);
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    self.stream = connection.streams().accept(Dir::Bi);
                    self.write(&mut connection)?;
                }
                Event::Stream(StreamEvent::Writable { .. }) => self.write(&mut connection)?,
                Event::Stream(StreamEvent::Readable { .. }) => self.read(&mut connection, now)?,
                _ => {}
            }
        }
        self.connection = Some((handle, connection));
        Ok(())
    }

    /// The server writes as much of the file as the connection takes.
    fn write(&mut self, connection: &mut Connection) -> Result<(), PluginError> {
        let Some(stream) = self.stream.filter(|_| self.side == EndpointSide::Sender) else {
            return Ok(());
        };
        let block = [0; BLOCK];
        while self.unwritten > 0 {
            let length = self.unwritten.min(BLOCK as u64) as usize;
            match connection.send_stream(stream).write(&block[..length]) {
                Ok(written) => self.unwritten -= written as u64,
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(failed("write", error)),
            }
        }
        // It is finished once.
        self.stream = None;
        let finished = connection.send_stream(stream).finish();
        finished.map_err(|error| failed("finish", error))
    }

    /// The client reads what has arrived.
    fn read(&mut self, connection: &mut Connection, now: Duration) -> Result<(), PluginError> {
        let Some(stream) = self.stream.filter(|_| self.side == EndpointSide::Receiver) else {
            return Ok(());
        };
        let mut receiving = connection.recv_stream(stream);
        let mut chunks = receiving
            .read(true)
            .map_err(|error| failed("read", error))?;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.delivered += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.finished.get_or_insert(now);
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(error) => return Err(failed("read", error)),
            }
        }
        // New credit is sent with the next datagram.
        let _ = chunks.finalize();
        if self.finished.is_some() {
            self.stream = None;
            connection.close(self.epoch + now, 0u32.into(), bytes::Bytes::new());
        }
        Ok(())
    }
}

fn of_quinn(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

fn to_quinn(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

impl Endpoint for Quic {
    fn start(&mut self, now: Duration) -> Result<(), PluginError> {
        if self.side == EndpointSide::Receiver {
            let (at, config) = (self.at(now), self.client.clone());
            let connection = self.stack.connect(at, config, SERVER, "server");
            self.connection = Some(connection.map_err(|error| failed("connect", error))?);
        }
        self.drive(now)
    }

    fn receive(&mut self, datagram: Datagram, now: Duration) -> Result<(), PluginError> {
        self.marked += u64::from(datagram.ecn == Ecn::Ce);
        let (at, ecn) = (self.at(now), to_quinn(datagram.ecn));
        let peer = match self.side {
            EndpointSide::Sender => CLIENT,
            EndpointSide::Receiver => SERVER,
        };
        let data = BytesMut::from(&datagram.payload[..]);
        self.buffer.clear();
        match self
            .stack
            .handle(at, peer, None, ecn, data, &mut self.buffer)
        {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.stack.accept(incoming, at, &mut self.buffer, None);
                self.connection = Some(accepted.map_err(|error| failed("accept", error.cause))?);
            }
            Some(DatagramEvent::Response(response)) => self.answer(response.size),
            None => {}
        }
        self.drive(now)
    }

    fn poll_transmit(&mut self, now: Duration) -> Result<Option<Datagram>, PluginError> {
        if let Some(payload) = self.answers.pop() {
            let ecn = Ecn::NotEct;
            return Ok(Some(Datagram { payload, ecn }));
        }
        let at = self.at(now);
        let Some((_, connection)) = &mut self.connection else {
            return Ok(None);
        };
        let mut payload = Vec::new();
        let sent = connection.poll_transmit(at, 1, &mut payload);
        Ok(sent.map(|sent| Datagram {
            payload,
            ecn: of_quinn(sent.ecn),
        }))
    }

    fn next_wakeup(&mut self, _now: Duration) -> Result<Option<Duration>, PluginError> {
        let connection = self.connection.as_mut().map(|(_, connection)| connection);
        let timer = connection.and_then(|connection| connection.poll_timeout());
        Ok(timer.map(|timer| timer - self.epoch))
    }

    fn on_wakeup(&mut self, now: Duration) -> Result<(), PluginError> {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at);
        }
        self.drive(now)
    }

    fn delivered(&self) -> Option<u64> {
        Some(self.delivered)
    }

    fn report(&self, _now: Duration, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        match (self.side, &self.connection) {
            (EndpointSide::Sender, Some((_, connection))) => {
                let path = connection.stats().path;
                tell("lost_packets", path.lost_packets as f64);
                tell("congestion_events", path.congestion_events as f64);
            }
            (EndpointSide::Receiver, _) => {
                tell("marked", self.marked as f64);
                if let Some(finished) = self.finished {
                    tell("completion_time", finished.as_secs_f64());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What `class = "quic"` in the experiment stands for.
pub fn plugins() -> Plugins {
    Plugins::new().with_endpoint("quic", |identity, context| {
        Ok(Box::new(Quic::new(identity, context)?))
    })
}
