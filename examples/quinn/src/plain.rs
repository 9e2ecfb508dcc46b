//! A session without secrets in place of TLS: the same flights and packet spaces, and nothing is encrypted.
//!
//! A simulation has no attackers, and TLS draws keys that cannot be given a seed. The handshake takes one round trip,
//! as that of TLS 1.3: a hello from each side, the server's parameters, and two messages of the end. Each packet carries
//! a tag of 16 bytes, as with AES-GCM, so that the sizes of packets are those of QUIC. The messages are as long as a
//! ClientHello, and a server's flight with a small certificate, usually are.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Length of the tag of AES-128-GCM (RFC 9001, section 5.3).
const TAG: usize = 16;

/// Bytes of a ClientHello beside the transport parameters, of a ServerHello, of the rest of the server's flight, and of
/// the client's Finished.
const HELLO: usize = 200;
const SERVER_HELLO: usize = 90;
const CERTIFICATE: usize = 900;
const FINISHED: usize = 36;

/// The configuration of both sides.
pub struct Plain;

/// Keys that encrypt nothing.
struct PlainKey;

fn keys() -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(PlainKey),
            remote: Box::new(PlainKey),
        },
        packet: packet_keys(),
    }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(PlainKey),
        remote: Box::new(PlainKey),
    }
}

impl PacketKey for PlainKey {
    fn encrypt(&self, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let tag = buf.len() - TAG;
        buf[tag..].fill(0);
    }

    fn decrypt(
        &self,
        _packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for PlainKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl HmacKey for Plain {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        // FNV-1a: a reset token has to differ by connection identifier, and to keep no secret.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for (i, byte) in (0..).zip(signature) {
            for &part in data.iter().chain([&i]) {
                hash = (hash ^ u64::from(part)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            *byte = (hash >> 32) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        TAG
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; TAG];
        self.sign(data, &mut expected);
        (expected == signature).then_some(()).ok_or(CryptoError)
    }
}

impl HandshakeTokenKey for Plain {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(PlainKey)
    }
}

impl AeadKey for PlainKey {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&[0; TAG]);
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        _additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

impl ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(PlainSession::new(Side::Client, params)))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(
        &self,
        _version: u32,
        _dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(PlainSession::new(Side::Server, params))
    }
}

/// What a side writes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Hello,
    /// The keys of the handshake; the server's hello comes before them.
    HandshakeKeys,
    /// The last message, and the keys of the data.
    Finish,
    Nothing,
}

/// One side of a handshake. A message has its length in front, in two bytes.
struct PlainSession {
    side: Side,
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    next: Next,
    /// Messages of the peer that have been read, and the bytes of the next one so far.
    read: usize,
    partial: Vec<u8>,
}

impl PlainSession {
    fn new(side: Side, params: &TransportParameters) -> Self {
        let mut own = Vec::new();
        params.write(&mut own);
        Self {
            side,
            own,
            peer: None,
            next: if side.is_client() {
                Next::Hello
            } else {
                Next::HandshakeKeys
            },
            read: 0,
            partial: Vec::new(),
        }
    }

    /// Writes a message: its length, that of the parameters, the parameters, and zeros.
    fn write(&self, buf: &mut Vec<u8>, params: &[u8], more: usize) {
        buf.extend_from_slice(&((2 + params.len() + more) as u16).to_be_bytes());
        buf.extend_from_slice(&(params.len() as u16).to_be_bytes());
        buf.extend_from_slice(params);
        buf.resize(buf.len() + more, 0);
    }

    /// A whole message of the peer.
    fn hear(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.read += 1;
        let broken = || TransportError {
            code: TransportErrorCode::PROTOCOL_VIOLATION,
            frame: None,
            reason: "a message of the handshake is broken".to_owned(),
        };
        let (length, rest) = message.split_at_checked(2).ok_or_else(broken)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length > 0 {
            let mut params = rest.get(..length).ok_or_else(broken)?;
            let read = TransportParameters::read(self.side, &mut params);
            self.peer = Some(read.map_err(|_| broken())?);
        }
        Ok(())
    }
}

impl Session for PlainSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        // The client waits for the hello and the parameters, the server for the hello and the client's last message.
        self.read < 2 || self.next != Next::Nothing
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.partial.extend_from_slice(buf);
        while let Some(&[high, low]) = self.partial.first_chunk() {
            let end = 2 + usize::from(u16::from_be_bytes([high, low]));
            if self.partial.len() < end {
                break;
            }
            let message: Vec<u8> = self.partial.drain(..end).skip(2).collect();
            self.hear(&message)?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.next, self.side, self.read) {
            (Next::Hello, Side::Client, _) => {
                self.write(buf, &self.own, HELLO);
                self.next = Next::HandshakeKeys;
                None
            }
            (Next::HandshakeKeys, side, 1..) => {
                if side.is_server() {
                    self.write(buf, &[], SERVER_HELLO);
                }
                self.next = Next::Finish;
                Some(keys())
            }
            (Next::Finish, Side::Server, _) => {
                self.write(buf, &self.own, CERTIFICATE);
                self.next = Next::Nothing;
                Some(keys())
            }
            (Next::Finish, Side::Client, 2..) => {
                self.write(buf, &[], FINISHED);
                self.next = Next::Nothing;
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }

    fn is_valid_retry(
        &self,
        _orig_dst_cid: &ConnectionId,
        _header: &[u8],
        _payload: &[u8],
    ) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
