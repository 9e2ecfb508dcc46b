//! Captures of packets, as columns for numpy.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use redtail_recordings::{Capture, ReadError};

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
    ) -> PyResult<BTreeMap<&'static str, (&'static str, Bound<'py, PyBytes>)>> {
        let packets = &self.0.packets;
        macro_rules! column {
            ($kind:literal, $name:ident) => {{
                let values = packets.$name.iter().map(|value| value.to_le_bytes());
                let bytes = packed(py, packets.$name.len(), values)?;
                (stringify!($name), ($kind, bytes))
            }};
        }
        Ok(BTreeMap::from([
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
        ]))
    }

    /// Who talks to whom, as columns in the same form; what each end has stands side by side.
    #[getter]
    fn conversations<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<BTreeMap<&'static str, (&'static str, Bound<'py, PyBytes>)>> {
        let talks = &self.0.conversations;
        let ends = || talks.iter().flat_map(|talk| talk.addresses);
        let versions = ends().map(|address| if address.is_ipv4() { [4] } else { [6] });
        let addresses = ends().map(|address| match address {
            IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
            IpAddr::V6(six) => six.octets(),
        });
        let ports = talks.iter().flat_map(|talk| talk.ports);
        let sizes = talks.iter().flat_map(|talk| talk.mss);
        let permitted = talks.iter().flat_map(|talk| talk.sack_permitted);
        let protocols = talks.iter().map(|talk| [talk.protocol]);
        let two = 2 * talks.len();
        Ok(BTreeMap::from([
            ("protocol", ("u1", packed(py, talks.len(), protocols)?)),
            ("version", ("u1", packed(py, two, versions)?)),
            ("address", ("V16", packed(py, two, addresses)?)),
            (
                "port",
                ("<u2", packed(py, two, ports.map(u16::to_le_bytes))?),
            ),
            (
                "mss",
                ("<u2", packed(py, two, sizes.map(u16::to_le_bytes))?),
            ),
            (
                "sack",
                ("?", packed(py, two, permitted.map(|yes| [u8::from(yes)]))?),
            ),
        ]))
    }

    /// The name of an interface; a file may describe many that captured nothing.
    fn interface(&self, number: usize) -> &str {
        let found = self.0.interfaces.get(number);
        found.map_or("", |one| one.name.as_str())
    }

    /// The number of packets that are in no column, by the reason.
    #[getter]
    fn left_out(&self) -> BTreeMap<&'static str, u64> {
        let left = self.0.left;
        BTreeMap::from([
            ("not_ip", left.not_ip),
            ("fragments", left.fragments),
            ("other", left.other),
            ("cut", left.cut),
            ("unknown_link", left.unknown_link),
            ("encrypted", left.encrypted),
        ])
    }

    /// How many packets came from links of a type that is not known, by the number of the type.
    #[getter]
    fn unknown_links(&self) -> BTreeMap<i32, u64> {
        self.0.unknown_links.clone()
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

/// So many values of a fixed size, one after the other, without a copy in between.
fn packed<const SIZE: usize>(
    py: Python<'_>,
    count: usize,
    values: impl Iterator<Item = [u8; SIZE]>,
) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, SIZE * count, |bytes| {
        for (place, value) in bytes.chunks_exact_mut(SIZE).zip(values) {
            place.copy_from_slice(&value);
        }
        Ok(())
    })
}
