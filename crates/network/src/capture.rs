//! Files of captured packets: those that pass chosen points of the network, as pcapng.
//!
//! What becomes of a packet is told in a comment of its record: that the queue dropped or marked it, or that the wire
//! lost it. A queue may decide when the packet leaves it. So the record of a packet that arrived is written when its fate is known
//! (`pending`), and the others of its file wait behind it: a file stays in the order of time, and has each packet
//! once at each point.

mod pcapng;
mod pending;
mod words;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use redtail_core::Time;
use redtail_qdisc::QueueDiscipline;
use redtail_spec::{EventKind, Scenario};

pub use self::pcapng::LinkType;
use self::pcapng::Record;
use self::pending::{Key, Pending};
use self::words::{Happened, Words};
use crate::events::PacketEvent;
use crate::link::{End, Link};
use crate::network::Network;
use crate::packet::ContentId;

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

/// A link of which packets are captured, at either of its ends.
#[derive(Debug, Default)]
struct Watched {
    /// For each of its ends, the interfaces.
    places: [Vec<Place>; 2],
    /// Packets captured at each of its ends.
    captured: [u64; 2],
    /// Packets that its queue dropped since the latest packet that it sent.
    dropped_since: u64,
    /// Packets that did not fit its queue.
    without_room: u64,
}

/// The files of a run.
pub struct Files<'a> {
    files: Vec<Pending<Box<dyn Write + Send + 'a>>>,
    /// By link.
    links: Vec<Watched>,
    /// By link.
    words: Vec<Words>,
    /// What has happened since the links were at rest.
    happened: Vec<(Key, Happened)>,
    /// The latest packet that a link has sent, which a wire may still lose.
    sent: Option<Key>,
    /// The time of the latest packet, in nanoseconds.
    latest: u64,
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
        scenario: &Scenario,
        link: LinkType,
        snap: u32,
    ) -> Result<Self, CaptureError> {
        let mut made = Self {
            files: Vec::new(),
            links: network.links.iter().map(|_| Default::default()).collect(),
            words: Words::of_links(network, scenario),
            happened: Vec::new(),
            sent: None,
            latest: 0,
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
            let begun = begun.map_err(|error| CaptureError::Io { file, error })?;
            made.files.push(Pending::new(begun));
            for (interface, (point, link)) in (0..).zip(points.iter().zip(found)) {
                made.links[link].places[point.end as usize].push(Place { file, interface });
            }
        }
        Ok(made)
    }

    /// Whether packets that pass this end of a link are captured.
    pub fn wants(&self, link: u32, end: End) -> bool {
        self.failed.is_none() && !self.links[link as usize].places[end as usize].is_empty()
    }

    /// The queue of this link is one of the kernel, which tells no reasons.
    pub fn of_kernel(&mut self, link: u32) {
        self.words[link as usize].of_kernel = true;
    }

    /// Writes a packet that passes an end of a link: its first bytes, and how many it had.
    pub fn write(
        &mut self,
        link: u32,
        end: End,
        now: Time,
        packet: ContentId,
        (bytes, original): (&[u8], u32),
    ) {
        self.settle_all(None);
        self.latest = now.as_ps() / PS_PER_NS;
        let watched = &mut self.links[link as usize];
        watched.captured[end as usize] += 1;
        let dropped_before = match end {
            End::In => 0,
            End::Out => std::mem::take(&mut watched.dropped_since),
        };
        for place in &watched.places[end as usize] {
            let record = Record {
                interface: place.interface,
                ns: self.latest,
                captured: bytes.to_vec(),
                original,
                dropped_before,
                comments: Vec::new(),
            };
            self.files[place.file].push((link, packet), record);
        }
        self.write_settled();
    }

    /// A link has sent this packet; called after [`write`](Self::write) where that end is captured.
    pub fn sent(&mut self, link: u32, packet: ContentId) {
        if self.watches(link) {
            self.settle_all(None);
            self.sent = Some((link, packet));
        }
    }

    /// A queue has dropped or marked a packet, or a wire has lost it.
    pub fn tell(&mut self, event: &PacketEvent<'_>) {
        if self.watches(event.link) {
            let happened = Happened {
                kind: event.kind,
                reason: event.reason,
                waited: (event.since).map(|since| (event.now - since).as_secs_f64()),
            };
            self.happened
                .push(((event.link, event.packet.content), happened));
        }
    }

    /// Writes what has happened, with the states of the control laws; called when the links are at rest.
    #[inline]
    pub fn note_laws(&mut self, links: &[Link]) {
        if !self.happened.is_empty() {
            self.settle_all(Some(links));
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
        let mut counted: Vec<Vec<(u32, u64, u64)>> = vec![Vec::new(); self.files.len()];
        for link in &self.links {
            for (end, places) in link.places.iter().enumerate() {
                // Nothing that arrived is missing in a capture; what was not sent off is.
                let dropped = [0, link.without_room][end];
                for place in places {
                    counted[place.file].push((place.interface, link.captured[end], dropped));
                }
            }
        }
        for (file, (pending, mut counted)) in self.files.into_iter().zip(counted).enumerate() {
            counted.sort_unstable();
            pending
                .finish(self.latest, &counted)
                .map_err(|error| CaptureError::Io { file, error })?;
        }
        Ok(())
    }

    fn watches(&self, link: u32) -> bool {
        self.wants(link, End::In) || self.wants(link, End::Out)
    }

    /// Tells what has happened, and that nothing happens any more to the packet that a link sent last. With `links` the
    /// states of the control laws are told too.
    fn settle_all(&mut self, links: Option<&[Link]>) {
        for (key, happened) in std::mem::take(&mut self.happened) {
            let law = links.map(|links| links[key.0 as usize].queue.internals());
            let comment = self.words[key.0 as usize].comment(happened, law);
            for file in &mut self.files {
                file.tell(key, &comment);
            }
            if happened.kind == EventKind::Drop {
                let watched = &mut self.links[key.0 as usize];
                watched.dropped_since += 1;
                watched.without_room += u64::from(happened.reason == Some("limit"));
                self.settle(key);
            }
        }
        if let Some(key) = self.sent.take() {
            self.settle(key);
        }
    }

    fn settle(&mut self, key: Key) {
        for file in &mut self.files {
            file.settle(key);
        }
        self.write_settled();
    }

    fn write_settled(&mut self) {
        if self.failed.is_some() {
            return;
        }
        for (number, file) in self.files.iter_mut().enumerate() {
            if let Err(error) = file.write_settled() {
                self.failed = Some((number, error));
                return;
            }
        }
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
