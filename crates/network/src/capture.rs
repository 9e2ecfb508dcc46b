//! Files of captured packets: those that pass chosen points of the network, as pcapng.

mod pcapng;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use redtail_core::Time;

pub use self::pcapng::LinkType;
use crate::link::End;
use crate::network::Network;

/// Picoseconds in a nanosecond.
const PS_PER_NS: u64 = 1000;

/// Where packets are captured; as text `LINK`, `LINK:in` or `LINK:out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Name of the link, as in results.
    pub link: String,
    /// The end of it; in text the default is `out`.
    pub end: End,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (link, end) = text.split_once(':').unwrap_or((text, "out"));
        let end = match end {
            "in" => End::In,
            "out" => End::Out,
            _ => {
                return Err(format!(
                    "{text:?}: a link has no end {end:?}; accepted: {link}:in (what arrives at \
                     its queue), {link}:out or {link} (what it has sent off)"
                ));
            }
        };
        Ok(Self {
            link: link.to_owned(),
            end,
        })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            End::In => "in",
            End::Out => "out",
        };
        write!(f, "{}:{end}", self.link)
    }
}

/// The points of a file, and where its bytes go. A file with several points has an interface for each.
pub type PointsAndFile<'a> = (Vec<Point>, Box<dyn Write + Send + 'a>);

/// Why there is no capture, or no complete one.
#[derive(Debug)]
pub enum CaptureError {
    /// A point does not exist or cannot be expressed; the text says why.
    Impossible(String),
    /// A file could not be written.
    Io {
        /// Its index in the files of the capture.
        file: usize,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(text) => f.write_str(text),
            Self::Io { file, error } => write!(f, "capture file {file}: {error}"),
        }
    }
}

impl std::error::Error for CaptureError {}

/// A point in the recorder: the file, and the interface in that file.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: usize,
    interface: u32,
}

/// The files of a run.
pub struct Files<'a> {
    files: Vec<pcapng::Writer<Box<dyn Write + Send + 'a>>>,
    /// By link, for each of its ends.
    places: Vec<[Vec<Place>; 2]>,
    /// The first file that could not be written; nothing is written after that.
    failed: Option<(usize, io::Error)>,
}

impl<'a> Files<'a> {
    /// Begins every file. Packets begin as `link` says, and at most `snap` bytes of each are kept.
    ///
    /// # Errors
    /// When the network has no such link, or a file cannot be written.
    pub fn new(
        wanted: Vec<PointsAndFile<'a>>,
        network: &Network,
        link: LinkType,
        snap: u32,
    ) -> Result<Self, CaptureError> {
        let mut made = Self {
            files: Vec::new(),
            places: network.links.iter().map(|_| Default::default()).collect(),
            failed: None,
        };
        for (file, (points, out)) in wanted.into_iter().enumerate() {
            let found = points
                .iter()
                .map(|point| find(&point.link, network))
                .collect::<Result<Vec<usize>, _>>()?;
            let begun = pcapng::Writer::new(out).and_then(|mut writer| {
                for (point, &at) in points.iter().zip(&found) {
                    let rate = network.links[at].transmitter.rate();
                    let what = match point.end {
                        End::In => "packets arriving at the queue",
                        End::Out => "packets sent off, at the end of their transmission",
                    };
                    writer.interface(link, snap, &point.to_string(), what, rate.as_bps())?;
                }
                Ok(writer)
            });
            made.files
                .push(begun.map_err(|error| CaptureError::Io { file, error })?);
            for (interface, (point, link)) in (0..).zip(points.iter().zip(found)) {
                made.places[link][point.end as usize].push(Place { file, interface });
            }
        }
        Ok(made)
    }

    /// Whether packets that pass this end of a link are captured.
    pub fn wants(&self, link: u32, end: End) -> bool {
        self.failed.is_none() && !self.places[link as usize][end as usize].is_empty()
    }

    /// Writes a packet that passes an end of a link: its first bytes, and how many it had.
    pub fn write(&mut self, link: u32, end: End, now: Time, bytes: &[u8], original: u32) {
        let ns = now.as_ps() / PS_PER_NS;
        for place in &self.places[link as usize][end as usize] {
            let written = self.files[place.file].packet(place.interface, ns, bytes, original);
            if let Err(error) = written {
                self.failed = Some((place.file, error));
                return;
            }
        }
    }

    /// Whether a file could not be written; the run then ends.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Ends every file.
    ///
    /// # Errors
    /// When a file could not be written.
    pub fn finish(self) -> Result<(), CaptureError> {
        if let Some((file, error)) = self.failed {
            return Err(CaptureError::Io { file, error });
        }
        for (file, writer) in self.files.into_iter().enumerate() {
            writer
                .finish()
                .map_err(|error| CaptureError::Io { file, error })?;
        }
        Ok(())
    }
}

fn find(link: &str, network: &Network) -> Result<usize, CaptureError> {
    let found = network.links.iter().position(|known| known.name == link);
    found.ok_or_else(|| {
        let names: Vec<&str> = network.links.iter().map(|known| &*known.name).collect();
        CaptureError::Impossible(format!(
            "no link is called {link:?}; this experiment has: {} (a return direction is a link \
             if the file describes one)",
            names.join(", ")
        ))
    })
}
