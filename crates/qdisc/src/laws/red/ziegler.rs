//! Parameters of RED computed for TCP traffic.
//!
//! Source: T. Ziegler, C. Brandauer, S. Fdida, "A Quantitative Model for the Parameter
//! Setting of RED with TCP Traffic", IWQoS 2001 (LNCS 2092, p. 202), as applied by
//! C. Brandauer et al., "Comparison of Tail Drop and Active Queue Management Performance for
//! bulk-data and Web-like Internet Traffic", ISCC 2001 ("REDopt").
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | C | the link's rate | bit/s |
//! | N | TCP flows | 1 |
//! | r_i | round-trip times without queueing, one for each flow | s |
//! | L | a TCP packet | bit |
//! | b | packets per acknowledgement | 1 |
//! | T_0 | retransmission timeout | s |
//! | U, L_u | rate and packet of the UDP traffic | bit/s, bit |
//! | p | drop probability in equilibrium, the same for every packet | 1 |
//! | lambda | packets that leave the link | 1/s |
//! | D | max_th - min_th | packets |
//! | Q | average queue in equilibrium | packets |
//! | R_i | round-trip times with queueing | s |
//! | W | mean window | packets |
//! | I | period of the oscillation, over which w_q averages | s |
//!
//! The papers state:
//!
//! ```text
//! max_p = 2 p                   so that avg settles halfway between the thresholds,
//!         1.1 times that        with UDP traffic
//! C_tcp = C - U (1 - p)         the capacity of the model is the rate that UDP does not use
//! D, thresholds and limit       grow linearly with C r and with N
//! ```
//!
//! The papers' closed formulas are not available here, so the following is derived. The coefficients of D
//! are recalled from the published fit; with all of them the average settles at min_th + 0.6 (max_th -
//! min_th), for each number of flows from 16 to 256:
//!
//! ```text
//! D      = 85 + 0.0216 lambda_0 mean(r) + 0.567 N      lambda_0: lambda at p = 0
//! min_th = 0.3 D,  max_th = 1.3 D,  limit = 2 D         3 : 13 : 20, the papers' proportions
//! Q      = 0.8 D                                       halfway
//! R_i    = r_i + Q / lambda,   lambda = C_tcp / L + U (1 - p) / L_u
//! sum_i T(p, R_i) (1 - p) = C_tcp / L                  solved for p by bisection
//! T(p, R) = 1 / (R sqrt(2 b p / 3) + T_0 min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2))
//!                          Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998, equation 30
//! W      = C_tcp / L mean(R) / ((1 - p) N)
//! I      = max(2/3 b W mean(R), 2 mean(R))
//! w_q    = 1 - exp(-1 / (lambda I))
//! ```

use redtail_core::{Bytes, Rate, Span};

use crate::LinkFacts;

/// What the parameters are computed from.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// The link's rate.
    pub capacity: Rate,
    /// Round-trip times without queueing or transmission, each with the share of flows that
    /// have it; the shares need not add up to one.
    pub round_trips: Vec<(Span, f64)>,
    /// Number of TCP flows that send all the time; a mean if flows start and end.
    pub flows: f64,
    /// Size of the TCP packets on the link.
    pub packet: Bytes,
    /// Packets per acknowledgement: 2 with delayed acknowledgements, otherwise 1.
    pub packets_per_ack: f64,
    /// Smallest retransmission timeout of the TCP flows; [`MIN_RTO`] if it is not known.
    pub min_rto: Span,
    /// Rate of all UDP traffic that arrives; zero is none.
    pub udp_rate: Rate,
    /// Size of the UDP packets on the link.
    pub udp_packet: Bytes,
}

/// The retransmission timeout with which the published settings were checked.
/// Source: the ISCC 2001 reproduction notes (T_0 = 0.4 s); the papers do not give one.
pub const MIN_RTO: Span = Span::from_ms(400);

/// The parameters, and the equilibrium of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Threshold below which no packet is dropped, in packets.
    pub min_th: f64,
    /// Threshold at which the probability reaches `max_p`, in packets.
    pub max_th: f64,
    /// The buffer, in packets.
    pub limit: f64,
    /// Drop probability at `max_th`.
    pub max_p: f64,
    /// Weight of one arrival in the average.
    pub w_q: f64,
    /// The drop probability p in equilibrium.
    pub loss: f64,
    /// The target Q of the average queue, in packets.
    pub target: f64,
    /// The rate lambda: packets that leave the link in a second.
    pub packet_rate: f64,
    /// Mean round-trip time with queueing, in seconds.
    pub round_trip: f64,
}

impl Situation {
    /// Returns the facts of a link for the model; `None` if no TCP flow crosses the link.
    pub fn of_link(link: &LinkFacts) -> Option<Self> {
        (link.tcp_flows > 0).then(|| Self {
            capacity: link.rate,
            round_trips: link.round_trips.clone(),
            flows: link.tcp_flows as f64,
            packet: link.tcp_packet,
            packets_per_ack: if link.delayed_acks { 2.0 } else { 1.0 },
            min_rto: MIN_RTO,
            udp_rate: link.udp_rate,
            udp_packet: link.udp_packet,
        })
    }

    /// Returns the mean of `of` over the round-trip times.
    fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        let weight: f64 = self.round_trips.iter().map(|(_, share)| share).sum();
        let each = self.round_trips.iter();
        let sum: f64 = each
            .map(|(time, share)| share * of(time.as_secs_f64()))
            .sum();
        sum / weight
    }

    /// Returns the rate, in bit/s, that UDP leaves to TCP when a share `p` of its packets is dropped.
    fn tcp_capacity(&self, p: f64) -> f64 {
        self.capacity.as_bps() as f64 - self.udp_rate.as_bps() as f64 * (1.0 - p)
    }

    /// Returns lambda, the packets that leave the link in a second.
    fn packet_rate(&self, p: f64) -> f64 {
        let udp = match self.udp_rate.as_bps() {
            0 => 0.0,
            rate => rate as f64 * (1.0 - p) / self.udp_packet.bits() as f64,
        };
        self.tcp_capacity(p) / self.packet.bits() as f64 + udp
    }

    /// Returns T(p, R), the packets that a flow sends in a second.
    fn throughput(&self, p: f64, round_trip: f64) -> f64 {
        let b = self.packets_per_ack;
        let timeouts = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
        1.0 / (round_trip * (2.0 * b * p / 3.0).sqrt() + self.min_rto.as_secs_f64() * timeouts)
    }
}

/// The reason why the model gives no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTuning {
    /// There is no TCP flow, no round-trip time, or no packet size.
    NoTcp,
    /// UDP traffic alone fills the link.
    NoCapacity,
}

/// Computes the parameters.
///
/// # Errors
/// [`NoTuning`] where the model does not apply.
pub fn tune(situation: &Situation) -> Result<Tuning, NoTuning> {
    let has_tcp = situation.flows > 0.0
        && situation.packet > Bytes::ZERO
        && situation.round_trips.iter().any(|(_, share)| *share > 0.0);
    if !has_tcp {
        return Err(NoTuning::NoTcp);
    }
    if situation.tcp_capacity(0.0) <= 0.0 {
        return Err(NoTuning::NoCapacity);
    }
    let product = situation.packet_rate(0.0) * situation.mean(|round_trip| round_trip);
    let distance = 85.0 + 0.0216 * product + 0.567 * situation.flows;
    let target = 0.8 * distance;

    // The throughput of the flows falls with p, the capacity of the link for them does not.
    let excess = |p: f64| {
        let queueing = target / situation.packet_rate(p);
        let each = situation.mean(|round_trip| situation.throughput(p, round_trip + queueing));
        let wanted = situation.tcp_capacity(p) / situation.packet.bits() as f64;
        situation.flows * each * (1.0 - p) - wanted
    };
    let (mut low, mut high) = (0.0, 1.0);
    // Each step gives one bit of the result.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if excess(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let loss = 0.5 * (low + high);

    let packet_rate = situation.packet_rate(loss);
    let round_trip = situation.mean(|round_trip| round_trip) + target / packet_rate;
    let tcp_rate = situation.tcp_capacity(loss) / situation.packet.bits() as f64;
    let window = tcp_rate * round_trip / ((1.0 - loss) * situation.flows);
    let sawtooth = 2.0 / 3.0 * situation.packets_per_ack * window * round_trip;
    let period = sawtooth.max(2.0 * round_trip);
    let mixed = situation.udp_rate > Rate::from_bps(0);
    Ok(Tuning {
        min_th: 0.3 * distance,
        max_th: 1.3 * distance,
        limit: 2.0 * distance,
        max_p: (if mixed { 1.1 } else { 1.0 } * 2.0 * loss).min(1.0),
        w_q: -libm::expm1(-1.0 / (packet_rate * period)),
        loss,
        target,
        packet_rate,
        round_trip,
    })
}
