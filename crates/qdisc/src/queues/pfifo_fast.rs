//! Linux's pfifo_fast: three first-in first-out bands in strict priority, by the TOS octet.
//!
//! Source: Linux 6.1, `net/sched/sch_generic.c` (`prio2band`, `pfifo_fast_enqueue`,
//! `pfifo_fast_dequeue`, `pfifo_fast_init`) and `net/ipv4/route.c` (`ip_tos2prio`), which
//! `net/ipv4/ip_forward.c` applies to every forwarded packet.
//!
//! ```text
//! priority = ip_tos2prio[(TOS & 0x1e) >> 1]        of 16: best effort, bulk, interactive bulk, interactive
//! band     = prio2band[priority]                   of 3: 1, 2, 1, 0
//! ```
//!
//! The table has an entry for each of RFC 1349's types of service, whose four bits are three bits of the
//! DSCP and one bit of ECN. Both values of the ECN bit have the same entry, so the lower three bits of the
//! DSCP determine the band:
//!
//! | lower three bits | priority | band | codepoints |
//! |---|---|---|---|
//! | 0, 1 | best effort | 1 | BE, CS1 to CS7, LE |
//! | 2, 3 | bulk | 2 | AF11, AF21, AF31, AF41 |
//! | 4, 5 | interactive | 0 | AF12, AF22, AF32, AF42, VA |
//! | 6, 7 | interactive bulk | 1 | AF13, AF23, AF33, AF43, EF |
//!
//! So EF is in the band of best effort, and AF41 in the band after it, because the table is older than the
//! codepoints.
//! Each band has its own ring, which holds as many packets as the device's `tx_queue_len`.

use redtail_core::{Metric, Packet, ParamError, Time, params};

use crate::class::{self, Leaf};
use crate::queues::tail_drop::TailDropParams;
use crate::{FigureNames, Limit, QueueContext, QueueDiscipline, QueueKind, QueueParams, Sink};

params! {
    /// Linux's pfifo_fast: three first-in first-out bands in strict priority, by the TOS octet.
    pub struct PfifoFastParams {
        /// Limit on the waiting packets of each of the three bands: in packets, in bytes, in time at the link's rate, or a list of these.
        limit: Limit = Limit::packets(1000), "Linux 6.1, `pfifo_fast_init` (`tx_queue_len`, 1000 packets of an Ethernet device).";
    }
}

/// The number of bands; the first band has the highest priority.
const BANDS: usize = 3;
/// The names of the bands in metrics.
const NAMES: [&str; BANDS] = ["band0", "band1", "band2"];
/// The band of each codepoint by its lower three bits: `prio2band` of `ip_tos2prio`.
const BAND_OF: [usize; 8] = [1, 1, 2, 2, 0, 0, 1, 1];

impl PfifoFastParams {
    fn band(&self) -> QueueParams {
        QueueParams::TailDrop(TailDropParams { limit: self.limit })
    }
}

impl QueueKind for PfifoFastParams {
    type Queue<P: Packet> = PfifoFast<P>;

    const METRICS: &'static [&'static [&'static Metric]] = &[class::METRICS];

    fn example() -> &'static str {
        r#"limit = "100 packets""#
    }

    fn figures(&self, names: &mut FigureNames) {
        for name in NAMES {
            names.of_class(name, |names| names.add(class::METRICS));
        }
    }

    fn check(&self) -> Result<(), ParamError> {
        self.limit.check()
    }

    /// The queue has no limit as a whole, because each band has its own.
    fn limit(&self) -> Option<Limit> {
        None
    }

    fn build<P: Packet>(&self, context: QueueContext) -> PfifoFast<P> {
        let band = |name| Leaf::new(name, &self.band(), (*context.link).clone(), &context);
        PfifoFast {
            bands: NAMES.map(band),
        }
    }
}

/// The running queue.
#[derive(Debug)]
pub struct PfifoFast<P: Packet> {
    bands: [Leaf<P>; BANDS],
}

impl<P: Packet> PfifoFast<P> {
    fn leaves(&self) -> impl Iterator<Item = &Leaf<P>> {
        self.bands.iter()
    }

    fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Leaf<P>> {
        self.bands.iter_mut()
    }
}

impl<P: Packet> QueueDiscipline<P> for PfifoFast<P> {
    fn enqueue(&mut self, packet: P, now: Time, sink: &mut impl Sink<P>) {
        let band = BAND_OF[usize::from(packet.dscp().get() & 7)];
        self.bands[band].enqueue(packet, now, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<P> {
        let mut waiting = self.bands.iter_mut().filter(|band| !band.is_empty());
        waiting.next()?.dequeue(now, sink)
    }

    class::discipline_of_classes!();
}
