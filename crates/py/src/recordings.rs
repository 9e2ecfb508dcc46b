//! Captures of packets, as columns for numpy.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use redtail_recordings::{Capture, Conversation, ReadError};

/// Protocol, addresses, ports, largest segments, and whether SACK is permitted, by end.
type Talk = (u8, [String; 2], [u16; 2], [u16; 2], [bool; 2]);

/// A capture: what `redtail_recordings::Capture` holds.
#[pyclass(frozen)]
pub struct PacketCapture(Capture);

#[pymethods]
impl PacketCapture {
    /// By name, the type that numpy gives a column and its bytes.
    #[getter]
    fn columns<'py>(
        &self,
        py: Python<'py>,
    ) -> BTreeMap<&'static str, (&'static str, Bound<'py, PyBytes>)> {
        let packets = &self.0.packets;
        macro_rules! column {
            ($kind:literal, $name:ident) => {{
                let bytes: Vec<u8> = packets.$name.iter().flat_map(|v| v.to_le_bytes()).collect();
                (stringify!($name), ($kind, PyBytes::new(py, &bytes)))
            }};
        }
        BTreeMap::from([
            column!("<i8", at_ns),
            column!("<u4", interface),
            column!("<u4", conversation),
            column!("u1", end),
            column!("<u4", size),
            column!("<u4", payload),
            column!("<u2", id),
            column!("u1", ecn),
            column!("u1", flags),
            column!("<u4", seq),
            column!("<u4", ack),
            column!("u1", options),
            column!("<u4", ts_val),
            column!("<u4", ts_ecr),
            column!("<u4", sack_row),
            column!("<u4", sack_left),
            column!("<u4", sack_right),
        ])
    }

    #[getter]
    fn conversations(&self) -> Vec<Talk> {
        let told = |talk: &Conversation| {
            let addresses = talk.addresses.map(|address| address.to_string());
            (
                talk.protocol,
                addresses,
                talk.ports,
                talk.mss,
                talk.sack_permitted,
            )
        };
        self.0.conversations.iter().map(told).collect()
    }

    /// Names and link types.
    #[getter]
    fn interfaces(&self) -> Vec<(String, i32)> {
        let told = self.0.interfaces.iter();
        told.map(|one| (one.name.clone(), one.link_type)).collect()
    }

    /// How many packets are in no column, by the reason.
    #[getter]
    fn left_out(&self) -> BTreeMap<&'static str, u64> {
        let left = self.0.left;
        BTreeMap::from([
            ("not_ip", left.not_ip),
            ("fragments", left.fragments),
            ("other", left.other),
            ("cut", left.cut),
            ("unknown_link", left.unknown_link),
        ])
    }

    /// Where and why reading ended before the end of the file.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.0.damage.clone()
    }
}

/// Reads a pcap or pcapng file.
#[pyfunction]
pub fn read_capture(py: Python<'_>, path: PathBuf) -> PyResult<PacketCapture> {
    match py.detach(|| redtail_recordings::read(&path)) {
        Ok(capture) => Ok(PacketCapture(capture)),
        Err(ReadError::Io(error)) => Err(PyOSError::new_err(error)),
        Err(ReadError::Form(text)) => Err(PyValueError::new_err(text)),
    }
}
