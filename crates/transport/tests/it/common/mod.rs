//! Scripts for one endpoint at a time: segments in at given times, segments out
//! and windows asserted. After packetdrill, in Rust and in virtual time.
//!
//! Segments have 1000 bytes of payload and are named by their place in the
//! stream: `"3"` is bytes 3000..4000, `"r3"` the same sent again, `"3:400"` its
//! first 400 bytes. Marks after it: `e` ECT(0), `l` ECT(1), `c` CWR, `p` PSH, `f` FIN. `"fin"` is a
//! FIN alone, `"ack"` an acknowledgement alone, `"probe"` one byte as a window probe.

pub mod twins;

use redtail_core::{Bytes, Ecn, Span, Time};
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{
    Flags, Receiver, SackBlock, SackBlocks, Segment, Sender, SenderCounters, TcpParams,
};

use self::twins::{TwinReceivers, TwinSenders};

pub const MSS: u64 = 1000;

/// What a receiver with the default `receive_window` announces.
pub const WINDOW: u32 = 65_535 << 14;

/// Plain parameters on which scripts build: no handshake, every segment
/// acknowledged, no limited transmit, an initial window of ten segments.
pub fn params(recovery: RecoveryKind) -> TcpParams {
    TcpParams {
        mss: Bytes::new(MSS),
        recovery,
        initial_window: 10,
        limited_transmit: false,
        delayed_ack: false,
        handshake: false,
        ..TcpParams::default()
    }
}

/// The same parameters without a limit of receive window and send buffer.
pub fn unlimited(params: TcpParams) -> TcpParams {
    TcpParams {
        receive_window: Bytes::new(1 << 30),
        receive_autotuning: false,
        send_buffer: None,
        ..params
    }
}

pub fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// An acknowledgement of `segments`, with SACK blocks given in segments.
pub fn ack_of(segments: u64, sacked: &[(u64, u64)]) -> Segment {
    let ack = segments * MSS;
    let mut sack = SackBlocks::default();
    for &(start, end) in sacked {
        let block = SackBlock {
            start: start * MSS,
            end: end * MSS,
        };
        sack.push(ack, block);
    }
    Segment {
        ack,
        sack,
        window: WINDOW,
        flags: Flags::ACK,
        ..Segment::default()
    }
}

/// A sender under test, the peer being the script.
pub struct SenderScript {
    sender: TwinSenders,
    now: Time,
    /// Sent since the latest expectation.
    sent: Vec<String>,
    /// The segments themselves, all of them.
    pub wire: Vec<(Time, Segment)>,
    highest: u64,
}

impl SenderScript {
    /// Opens an endless sender at time 0.
    pub fn bulk(params: &TcpParams) -> Self {
        Self::open(params, None)
    }

    /// Opens a sender of `size` bytes at time 0.
    pub fn transfer(params: &TcpParams, size: u64) -> Self {
        Self::open(params, Some(size))
    }

    /// Opens a sender at time 0 whose application has written nothing yet.
    pub fn without_data(params: &TcpParams) -> Self {
        Self::with(Sender::without_data(params), params)
    }

    fn open(params: &TcpParams, size: Option<u64>) -> Self {
        Self::with(Sender::new(params, size), params)
    }

    fn with(sender: Sender, params: &TcpParams) -> Self {
        params.check().expect("the parameters can be run");
        let mut script = Self {
            sender: TwinSenders::new(sender),
            now: Time::ZERO,
            sent: Vec::new(),
            wire: Vec::new(),
            highest: 0,
        };
        script.sender.open(params.handshake);
        script.poll();
        script
    }

    fn poll(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            self.sender.assert_consistent();
            let name = self.name(&segment);
            self.sent.push(name);
            self.wire.push((self.now, segment));
        }
        self.sender.assert_consistent();
    }

    fn name(&mut self, segment: &Segment) -> String {
        let mut name = String::new();
        let fin = segment.flags.contains(Flags::FIN);
        if segment.flags.contains(Flags::SYN) {
            name.push_str("syn");
        } else if segment.len == 0 && !fin {
            name.push_str("ack");
        } else if segment.len == 1 && self.sender.snapshot().outstanding == 0 {
            assert_eq!(segment.seq, self.highest, "a probe is the next byte");
            return "probe".to_owned();
        } else if segment.len == 0 {
            name.push_str(if segment.seq < self.highest {
                "rfin"
            } else {
                "fin"
            });
        } else {
            if segment.seq < self.highest {
                name.push('r');
            }
            name.push_str(&(segment.seq / MSS).to_string());
            if u64::from(segment.len) != MSS {
                name.push_str(&format!(":{}", segment.len));
            }
            assert_eq!(segment.seq % MSS, 0, "segment boundaries moved");
        }
        match segment.ecn {
            Ecn::Ect0 => name.push('e'),
            Ecn::Ect1 => name.push('l'),
            Ecn::NotEct | Ecn::Ce => {}
        }
        if segment.flags.contains(Flags::CWR) && segment.len > 0 {
            name.push('c');
        }
        if segment.flags.contains(Flags::PSH) {
            name.push('p');
        }
        if fin && segment.len > 0 {
            name.push('f');
        }
        let end = segment.seq + u64::from(segment.len) + u64::from(fin);
        self.highest = self.highest.max(end);
        name
    }

    /// Lets time pass up to `at` (in milliseconds), timers included.
    pub fn at(&mut self, at: u64) -> &mut Self {
        let at = ms(at);
        assert!(at >= self.now, "a script goes forward");
        while let Some(due) = self.sender.next_wakeup().filter(|&due| due <= at) {
            assert!(due >= self.now, "a timer in the past");
            self.now = due;
            self.sender.on_wakeup(due);
            self.poll();
        }
        self.now = at;
        self
    }

    /// A segment arrives.
    pub fn receives(&mut self, segment: Segment) -> &mut Self {
        self.sender.on_segment(&segment, self.now);
        self.poll();
        self
    }

    /// The application writes this many segments.
    pub fn writes(&mut self, segments: u64) -> &mut Self {
        self.sender.write(segments * MSS);
        self.poll();
        self
    }

    /// The application closes.
    pub fn closes(&mut self) -> &mut Self {
        self.sender.close();
        self.poll();
        self
    }

    /// An acknowledgement of `segments` and a FIN arrives.
    pub fn ack_of_fin(&mut self, segments: u64) -> &mut Self {
        let ack = ack_of(segments, &[]);
        self.receives(Segment {
            ack: ack.ack + 1,
            ..ack
        })
    }

    /// The same with the peer's FIN.
    pub fn fin(&mut self, segments: u64) -> &mut Self {
        let ack = ack_of(segments, &[]);
        self.receives(Segment {
            ack: ack.ack + 1,
            flags: Flags::ACK.with(Flags::FIN),
            ..ack
        })
    }

    /// An acknowledgement of `segments` with a window of so many segments arrives.
    pub fn ack_window(&mut self, segments: u64, window: f64) -> &mut Self {
        let window = (window * MSS as f64) as u32;
        self.receives(Segment {
            window,
            ..ack_of(segments, &[])
        })
    }

    /// A plain acknowledgement of `segments` arrives.
    pub fn ack(&mut self, segments: u64) -> &mut Self {
        self.receives(ack_of(segments, &[]))
    }

    /// The same, with an echoed mark.
    pub fn ack_echo(&mut self, segments: u64) -> &mut Self {
        let ack = ack_of(segments, &[]);
        self.receives(Segment {
            flags: ack.flags.with(Flags::ECE),
            ..ack
        })
    }

    /// `count` plain acknowledgements of `segments` arrive.
    pub fn acks(&mut self, segments: u64, count: usize) -> &mut Self {
        for _ in 0..count {
            self.ack(segments);
        }
        self
    }

    /// An acknowledgement with SACK blocks arrives; all in segments.
    pub fn sack(&mut self, segments: u64, sacked: &[(u64, u64)]) -> &mut Self {
        self.receives(ack_of(segments, sacked))
    }

    /// What was sent since the last time this was asked.
    #[track_caller]
    pub fn sends(&mut self, expected: &str) -> &mut Self {
        let sent = std::mem::take(&mut self.sent).join(" ");
        assert_eq!(sent, expected, "at {:?}", self.now);
        self
    }

    /// The congestion window, in segments.
    #[track_caller]
    pub fn cwnd(&mut self, expected: f64) -> &mut Self {
        let cwnd = self.window();
        assert!(
            (cwnd - expected).abs() < 1e-9,
            "cwnd {cwnd}, not {expected}"
        );
        self
    }

    /// The congestion window, in segments.
    pub fn window(&self) -> f64 {
        self.sender.snapshot().cwnd / MSS as f64
    }

    /// The share of marks that the sender reckons with.
    pub fn alpha(&self) -> Option<f64> {
        self.sender.snapshot().alpha
    }

    /// The slow start threshold, in segments.
    #[track_caller]
    pub fn ssthresh(&mut self, expected: f64) -> &mut Self {
        let ssthresh = self.sender.snapshot().ssthresh / MSS as f64;
        assert_eq!(ssthresh, expected);
        self
    }

    /// When the retransmission timer will run out, in milliseconds.
    #[track_caller]
    pub fn timer(&mut self, expected: impl Into<Option<u64>>) -> &mut Self {
        assert_eq!(self.sender.next_wakeup(), expected.into().map(ms));
        self
    }

    /// Whether nothing will be sent any more.
    #[track_caller]
    pub fn closed(&mut self, expected: bool) -> &mut Self {
        assert_eq!(self.sender.is_closed(), expected);
        self
    }

    #[track_caller]
    pub fn complete(&mut self, expected: bool) -> &mut Self {
        assert_eq!(self.sender.is_complete(), expected);
        self
    }

    /// The segment to be sent next, data outstanding counted.
    pub fn next_byte(&self) -> u64 {
        (self.sender.acked() + self.sender.snapshot().outstanding) / MSS
    }

    pub fn now_ms(&self) -> u64 {
        (self.now - Time::ZERO).as_ps() / 1_000_000_000
    }

    /// When the data from `offset` on was last sent, in milliseconds.
    pub fn sent_at(&self, offset: u64) -> u64 {
        let mut sent = self.wire.iter().rev();
        let (at, _) = sent
            .find(|(_, segment)| segment.seq == offset)
            .expect("it was sent");
        at.as_ps() / ms(1).as_ps()
    }

    /// The end of what has been sent, in bytes.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// When a timer will run out, in milliseconds.
    pub fn next_wakeup_ms(&self) -> u64 {
        let at = self.sender.next_wakeup().expect("a timer runs");
        at.as_ps() / ms(1).as_ps()
    }

    /// The smoothed round-trip time, once there is one.
    pub fn srtt(&self) -> Option<Span> {
        self.sender.snapshot().srtt
    }

    pub fn counters(&self) -> SenderCounters {
        self.sender.counters()
    }
}

/// A receiver under test.
///
/// An acknowledgement is written as the number of segments it covers, then its
/// SACK blocks, an echo and a FIN: `"1 [4-5 2-3] ece fin"`; that of a FIN as one byte
/// more than the segments before it.
pub struct ReceiverScript {
    receiver: TwinReceivers,
    now: Time,
    sent: Vec<String>,
    /// The segments themselves, all of them.
    pub wire: Vec<(Time, Segment)>,
}

impl ReceiverScript {
    pub fn new(params: &TcpParams) -> Self {
        params.check().expect("the parameters can be run");
        Self {
            receiver: TwinReceivers::new(Receiver::new(params)),
            now: Time::ZERO,
            sent: Vec::new(),
            wire: Vec::new(),
        }
    }

    fn poll(&mut self) {
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            let mut name = String::new();
            if segment.flags.contains(Flags::SYN) {
                name.push_str("syn ");
            }
            name.push_str(&(segment.ack / MSS).to_string());
            if segment.ack % MSS != 0 {
                name.push_str(&format!(":{}", segment.ack % MSS));
            }
            let blocks: Vec<String> = segment
                .sack
                .iter(segment.ack)
                .map(|block| format!("{}-{}", block.start / MSS, block.end / MSS))
                .collect();
            if !blocks.is_empty() {
                name.push_str(&format!(" [{}]", blocks.join(" ")));
            }
            if segment.flags.contains(Flags::ECE) {
                name.push_str(" ece");
            }
            if segment.flags.contains(Flags::FIN) {
                name.push_str(" fin");
            }
            self.wire.push((self.now, segment));
            self.sent.push(name);
        }
    }

    /// Lets time pass up to `at` (in milliseconds), timers included.
    pub fn at(&mut self, at: u64) -> &mut Self {
        let at = ms(at);
        while let Some(due) = self.receiver.next_wakeup().filter(|&due| due <= at) {
            self.now = due;
            self.receiver.on_wakeup(due);
            self.poll();
        }
        self.now = at;
        self
    }

    pub fn receives(&mut self, segment: Segment) -> &mut Self {
        self.receiver.on_segment(&segment, self.now);
        self.poll();
        self
    }

    /// Segment number `index` arrives.
    pub fn data(&mut self, index: u64) -> &mut Self {
        self.receives(data(index))
    }

    /// Segments arrive in this order.
    pub fn all(&mut self, indices: impl IntoIterator<Item = u64>) -> &mut Self {
        for index in indices {
            self.data(index);
        }
        self
    }

    #[track_caller]
    pub fn sends(&mut self, expected: &str) -> &mut Self {
        let sent = std::mem::take(&mut self.sent).join(", ");
        assert_eq!(sent, expected, "at {:?}", self.now);
        self
    }

    /// The window announced last, in bytes.
    #[track_caller]
    pub fn window(&mut self, expected: u32) -> &mut Self {
        let (_, segment) = self.wire.last().expect("something was sent");
        assert_eq!(segment.window, expected, "at {:?}", self.now);
        self
    }

    #[track_caller]
    pub fn delivered(&mut self, segments: u64) -> &mut Self {
        assert_eq!(self.receiver.delivered(), segments * MSS);
        self
    }

    #[track_caller]
    pub fn timer(&mut self, expected: impl Into<Option<u64>>) -> &mut Self {
        assert_eq!(self.receiver.next_wakeup(), expected.into().map(ms));
        self
    }
}

/// Data segment number `index`, not ECN-capable.
pub fn data(index: u64) -> Segment {
    Segment {
        seq: index * MSS,
        len: MSS as u32,
        flags: Flags::ACK,
        ..Segment::default()
    }
}
