//! What the engine measures: the definitions of its metrics, the list of all metrics, and the names
//! that the metrics of a scenario have.
//!
//! Queues and kinds of traffic define their own metrics, in their own files. [`catalog`] has them
//! all; [`names`] has those of one scenario.

use std::collections::BTreeMap;

use redtail_core::{Metric, metrics};
use redtail_qdisc::{FigureNames, QueueParams};
use redtail_spec::{LinkParams, Record, Scenario};
use redtail_traffic::{Direction, FlowKind, TrafficParams};

metrics! {
    /// Of all packets at a link, and of each group's packets there.
    pub const AT_LINK of LinkAndGroup;

    /// Time that the link spent transmitting, divided by the length of the period. Of a transmission that crosses an end of the period, only the part inside the period counts. On a link whose [rate changes](../how-to/changing-links.md): bits sent, divided by the integral of the rate; or bytes sent, divided by the bytes of all opportunities of its trace. What the link's `overhead` adds counts as sent. With `airtime`, the overhead of frames counts as transmission. A phase in which the link has no capacity (an outage) has none.
    UTILIZATION = "utilization", Fraction, "Utilization", "utilization";
    /// Of the packets that arrived in the period, those that the queue dropped before the period ended.
    LOSS = "loss", Fraction, "Packets lost at the queue", "loss";
    /// Of the packets that arrived in the period, those that the queue marked (ECN) before the period ended.
    MARK = "mark", Fraction, "Packets marked at the queue", "marked";
    /// Packets waiting, weighted by time. They are not sampled, but summed over every change.
    QUEUE_LENGTH_MEAN = "queue_length_mean", Packets, "Mean queue length", "queue";
    /// Standard deviation of the number of packets waiting, weighted by time.
    QUEUE_LENGTH_STD = "queue_length_std", Packets, "Standard deviation of queue length", "queue sd";
    /// Time from a packet's arrival at the queue to the start of its transmission, over the packets whose transmission began in the period. Packets that were dropped have no delay. The mean is exact.
    QUEUE_DELAY_MEAN = "queue_delay_mean", Delay, "Mean queueing delay", "delay";
    /// Standard deviation of the queueing delay, exact.
    QUEUE_DELAY_STD = "queue_delay_std", Delay, "Standard deviation of queueing delay", "delay sd";
    /// Median of the queueing delay, from a histogram with three significant digits.
    QUEUE_DELAY_P50 = "queue_delay_p50", Delay, "Queueing delay, median", "delay p50";
    /// 95th percentile of the queueing delay, from the same histogram.
    QUEUE_DELAY_P95 = "queue_delay_p95", Delay, "Queueing delay, 95th percentile", "delay p95";
    /// 99th percentile of the queueing delay, from the same histogram.
    QUEUE_DELAY_P99 = "queue_delay_p99", Delay, "Queueing delay, 99th percentile", "delay p99";
    /// Packets lost, divided by the number of loss events.
    CONSECUTIVE_LOSS_MEAN = "consecutive_loss_mean", Packets, "Packets lost per loss event", "losses/event";
}

metrics! {
    /// Of the congestion events at a link.
    pub const OF_CONGESTION of Link;

    /// In each congestion event: flows that lose a packet, divided by active flows. The mean of this share over congestion events.
    LOSS_SYNCHRONIZATION = "loss_synchronization", Fraction, "Flows that lose in a congestion event", "losing flows";
    /// Mean time from the beginning of one congestion event to that of the next.
    LOSS_INTERVAL_MEAN = "loss_interval_mean", Time, "Mean time between congestion events", "loss interval";
    /// Standard deviation of the time from the beginning of one congestion event to that of the next.
    LOSS_INTERVAL_STD = "loss_interval_std", Time, "Standard deviation of the time between congestion events", "loss interval sd";
}

metrics! {
    /// Of the UDP groups together at a link.
    pub const OF_UDP_AT_LINK of Link;

    /// `loss` of the UDP groups together.
    UDP_LOSS = "udp_loss", Fraction, "UDP packets lost", "UDP loss";
}

metrics! {
    /// Of a link that loses packets on the wire.
    pub const OF_WIRE_LOSS of LinkInPeriod;

    /// Packets lost on the wire over packets transmitted, copies included, for a link with the key `wire.loss` or `wire.limit`; `loss` does not contain them, `utilization` does.
    WIRE_LOSS = "wire_loss", Fraction, "Packets lost on the wire", "lost on wire";
}

metrics! {
    /// Of a link that duplicates packets on the wire.
    pub const OF_WIRE_COPIES of LinkInPeriod;

    /// Copies that the wire made over packets transmitted, for a link with the key `wire.duplicate`. Packets that `wire.loss` takes have no copy.
    WIRE_DUPLICATES = "wire_duplicates", Fraction, "Packets duplicated on the wire", "duplicated";
}

metrics! {
    /// Of a link on the wire of which packets overtake each other.
    pub const OF_WIRE_ORDER of LinkInPeriod;

    /// Packets that left the wire after one that had entered it later, over all packets that left it: the ratio of reordered packets of RFC 4737, section 3.3, over the packets of all flows; copies do not count. For a link with the key `wire.reorder` or with `wire.order = "free"`.
    WIRE_REORDERED = "wire_reordered", Fraction, "Packets reordered on the wire", "reordered";
}

metrics! {
    /// Of a link on the wire of which the delay differs.
    pub const OF_WIRE_DELAY of LinkInPeriod;

    /// Mean time from the end of a packet's transmission to its arrival at the end of the link, exact, over the packets transmitted in the period: the propagation delay with all that `wire.jitter`, `wire.reorder`, `wire.delay_changes`, `wire.delay_trace` and `wire.batches` add, for a link with one of these keys.
    WIRE_DELAY_MEAN = "wire_delay_mean", Delay, "Mean delay on the wire", "wire delay";
    /// The longest of these times.
    WIRE_DELAY_MAX = "wire_delay_max", Delay, "Longest delay on the wire", "wire delay max";
}

metrics! {
    /// Of a link with a policer.
    pub const OF_POLICER of LinkInPeriod;

    /// Of the packets that reached the policer, those that it dropped. `loss` contains them.
    POLICER_LOSS = "policer_loss", Fraction, "Packets dropped by the policer", "policed";
    /// Of the packets that reached the policer, those that were green: those that conform, of a token bucket.
    POLICER_GREEN = "policer_green", Fraction, "Green packets at the policer", "green";
    /// Of the packets that reached the policer, those that were yellow: none, of a token bucket.
    POLICER_YELLOW = "policer_yellow", Fraction, "Yellow packets at the policer", "yellow";
    /// Of the packets that reached the policer, those that were red: those that exceed, of a token bucket.
    POLICER_RED = "policer_red", Fraction, "Red packets at the policer", "red";
}

metrics! {
    /// Of every TCP group, and of all of them together; in each phase too.
    pub const OF_TCP_AND_ALL of GroupAndAll;

    /// Payload bytes that were delivered in order to the receiving application during the period, but at most the bytes that arrived in it, divided by its length; summed over flows. Headers, further copies and data that waits behind a gap do not count.
    GOODPUT = "goodput", Rate, "TCP goodput", "goodput";
}

metrics! {
    /// Of every group whose flows are alike, and of all TCP flows that belong to no user.
    pub const OF_FLOWS_AND_ALL of GroupAndAllInPeriod;

    /// Jain's index over the flows' goodputs: 1 when all are equal, 1/n when one flow has everything. For a UDP group over received rates; without a prefix over all TCP flows.
    FAIRNESS = "fairness", Ratio, "Jain's fairness index", "fairness";
}

metrics! {
    /// Of every phase.
    pub const OF_PHASE of Phase;

    /// When the phase begins, from the start of the run. The first phase begins with the measurement period.
    BEGIN_TIME = "begin_time", Time, "Begin of the phase", "from";
    /// When the phase ends, from the start of the run.
    END_TIME = "end_time", Time, "End of the phase", "to";
}

metrics! {
    /// Of every group.
    pub const OF_GROUP of Group;

    /// The longest time that a packet of the group, sent in the period, waited for the access or exit link of its host. These links are not queues of the file. The wait is in no other metric, except in the times that it delays.
    HOST_WAIT_MAX = "host_wait_max", Delay, "Longest wait for a host's link", "host wait";
}

metrics! {
    /// Of every TCP group.
    pub const OF_TCP of Group;

    /// Payload bytes that reached receivers for the first time during the period, in order or not, divided by its length.
    RECEIVED_RATE = "received_rate", Rate, "Received rate", "received";
    /// Segments with payload that the group's senders sent.
    DATA_SEGMENTS = "data_segments", Count, "Segments with payload sent", "segments";
    /// Retransmissions among the segments with payload that the group's senders sent.
    RETRANSMISSIONS = "retransmissions", Count, "Retransmissions", "retransmissions";
    /// Acknowledgements that reached a sender and acknowledged nothing new, while data was outstanding.
    DUPLICATE_ACKS = "duplicate_acks", Count, "Duplicate acknowledgements", "duplicate ACKs";
    /// How often a sender entered fast recovery.
    FAST_RECOVERIES = "fast_recoveries", Count, "Fast recoveries", "fast recoveries";
    /// How often a sender's retransmission timer expired, also for a SYN.
    TIMEOUTS = "timeouts", Count, "Retransmission timeouts", "timeouts";
    /// Timeouts that a sender detected as spurious and undid (`frto`, `dsack`).
    SPURIOUS_TIMEOUTS = "spurious_timeouts", Count, "Spurious retransmission timeouts", "spurious timeouts";
    /// Fast retransmissions that a sender detected as spurious and undid (`frto`, `dsack`).
    SPURIOUS_FAST_RETRANSMITS = "spurious_fast_retransmits", Count, "Spurious fast retransmissions", "spurious fast rtx";
    /// How often a sender reduced its window because of a mark.
    ECN_REDUCTIONS = "ecn_reductions", Count, "Window reductions after ECN marks", "ECN reductions";
    /// How often sent data or a SYN waited for more than 10 s for its cumulative acknowledgement. A wait counts when it ends in the period, or has not ended at the end of the period. The part of a wait before the period is included. If there is at least one, redtail prints a warning with the results.
    STALLS = "stalls", Count, "Waits of more than 10 s for cumulative progress", "stalls";
    /// The longest time that sent data or a SYN waited for its cumulative acknowledgement, also if it is 10 s or less.
    ACK_WAIT_MAX = "ack_wait_max", Time, "Longest wait for cumulative progress", "longest wait";
}

metrics! {
    /// Of every UDP group.
    pub const OF_UDP of Group;

    /// Of a UDP group: bits of the packets that were sent in the period and received before it ended, IP header included, divided by its length; summed over flows. Of calls the packets in the group's direction.
    UDP_RECEIVED_RATE = "received_rate", Rate, "Received rate", "received";
    /// Of a UDP group's packets that were *sent* in the period: dropped or lost packets (at any queue, on any wire), divided by the sum of dropped, lost and received packets. Packets still in flight at the end do not count.
    END_TO_END_LOSS = "end_to_end_loss", Fraction, "Packets lost end to end", "lost";
}

metrics! {
    /// Of every UDP group; of TCP groups, and in phases, where `record` asks for it.
    pub const ONE_WAY of GroupInPhases;

    /// Of the packets that were sent in the period and received: mean time from sending to reception, access and exit links included (RFC 7679). Of UDP groups all packets, of calls those of media in the group's direction; of TCP groups, and in phases, the segments with payload in the group's direction, where [`record`](../how-to/measure-packets.md) has "one_way_delay". A phase counts the packets that arrive in it. The mean is exact.
    ONE_WAY_DELAY_MEAN = "one_way_delay_mean", Delay, "Mean one-way delay", "one-way";
    /// Median of the one-way delay, from a histogram with three significant digits.
    ONE_WAY_DELAY_P50 = "one_way_delay_p50", Delay, "One-way delay, median", "one-way p50";
    /// 95th percentile of the one-way delay, from the same histogram.
    ONE_WAY_DELAY_P95 = "one_way_delay_p95", Delay, "One-way delay, 95th percentile", "one-way p95";
    /// 99th percentile of the one-way delay, from the same histogram.
    ONE_WAY_DELAY_P99 = "one_way_delay_p99", Delay, "One-way delay, 99th percentile", "one-way p99";
}

metrics! {
    /// Of every group where `record` has "one_way_delay".
    pub const OF_VARIATION of GroupInPhases;

    /// The least one-way delay, exact.
    ONE_WAY_DELAY_MIN = "one_way_delay_min", Delay, "Least one-way delay", "one-way min";
    /// The greatest one-way delay, exact.
    ONE_WAY_DELAY_MAX = "one_way_delay_max", Delay, "Greatest one-way delay", "one-way max";
    /// Packet delay variation (RFC 5481, section 4.2): how much the one-way delay of a packet is above the least one of the group. The propagation delay of each packet's path is subtracted first, so that hosts at different distances do not count as variation. The mean is exact.
    PDV_MEAN = "pdv_mean", Delay, "Mean packet delay variation", "PDV";
    /// Median of the packet delay variation, from a histogram with three significant digits.
    PDV_P50 = "pdv_p50", Delay, "Packet delay variation, median", "PDV p50";
    /// 95th percentile of the packet delay variation, from the same histogram.
    PDV_P95 = "pdv_p95", Delay, "Packet delay variation, 95th percentile", "PDV p95";
    /// 99th percentile of the packet delay variation, from the same histogram.
    PDV_P99 = "pdv_p99", Delay, "Packet delay variation, 99th percentile", "PDV p99";
    /// Inter-packet delay variation (RFC 3393; RFC 5481, section 4.1): the absolute difference between the one-way delay of a packet and that of the packet of its flow that arrived before it. The mean is exact.
    IPDV_MEAN = "ipdv_mean", Delay, "Mean inter-packet delay variation", "IPDV";
    /// 95th percentile of the inter-packet delay variation, from a histogram with three significant digits.
    IPDV_P95 = "ipdv_p95", Delay, "Inter-packet delay variation, 95th percentile", "IPDV p95";
}

metrics! {
    /// Of every TCP group where `record` has "round_trip".
    pub const OF_ROUND_TRIPS of GroupInPhases;

    /// From the sending of a segment with payload to the arrival of the first acknowledgement that covers all of it, cumulative or selective (RFC 2018). Segments sent in the period, in the group's direction; not those of which a part was sent twice (Karn's algorithm; RFC 6298, section 3). What the receiver waits before it acknowledges is in it. A phase counts the segments that are acknowledged in it. The mean is exact.
    ROUND_TRIP_MEAN = "round_trip_mean", Delay, "Mean round-trip time", "round trip";
    /// The least round-trip time, exact.
    ROUND_TRIP_MIN = "round_trip_min", Delay, "Least round-trip time", "round trip min";
    /// Median of the round-trip times, from a histogram with three significant digits.
    ROUND_TRIP_P50 = "round_trip_p50", Delay, "Round-trip time, median", "round trip p50";
    /// 95th percentile of the round-trip times, from the same histogram.
    ROUND_TRIP_P95 = "round_trip_p95", Delay, "Round-trip time, 95th percentile", "round trip p95";
    /// 99th percentile of the round-trip times, from the same histogram.
    ROUND_TRIP_P99 = "round_trip_p99", Delay, "Round-trip time, 99th percentile", "round trip p99";
    /// The greatest round-trip time, exact.
    ROUND_TRIP_MAX = "round_trip_max", Delay, "Greatest round-trip time", "round trip max";
}

metrics! {
    /// Of all TCP packets at a link, and of each TCP group's there, where `record` has "loss_by_class".
    pub const OF_CLASSES_AT_LINK of LinkAndGroup;

    /// `loss` of the SYNs and SYN-ACKs.
    SYN_LOSS = "syn_loss", Fraction, "SYNs lost at the queue", "SYN loss";
    /// `loss` of the TCP packets without payload that are no SYNs: acknowledgements above all.
    ACK_LOSS = "ack_loss", Fraction, "Acknowledgements lost at the queue", "ACK loss";
    /// `loss` of the segments whose payload was sent for the first time.
    DATA_LOSS = "data_loss", Fraction, "Data lost at the queue", "data loss";
    /// `loss` of the segments of whose payload a part had been sent before.
    RETRANSMISSION_LOSS = "retransmission_loss", Fraction, "Retransmissions lost at the queue", "rtx loss";
    /// SYNs and SYN-ACKs that arrived in the period and that the queue dropped.
    SYNS_DROPPED = "syns_dropped", Count, "SYNs dropped", "SYNs dropped";
    /// The same of TCP packets without payload that are no SYNs.
    ACKS_DROPPED = "acks_dropped", Count, "Acknowledgements dropped", "ACKs dropped";
    /// The same of segments whose payload was sent for the first time.
    DATA_DROPPED = "data_dropped", Count, "Data segments dropped", "data dropped";
    /// The same of segments of whose payload a part had been sent before.
    RETRANSMISSIONS_DROPPED = "retransmissions_dropped", Count, "Retransmissions dropped", "rtx dropped";
}

metrics! {
    /// Of every TCP group where `record` has "loss_by_class".
    pub const OF_CLASSES of GroupInPhases;

    /// Of the group's SYNs and SYN-ACKs that were *sent* in the period: dropped or lost ones (at any queue, on any wire), divided by the sum of these and those that arrived. Both directions count; packets in flight at the end do not, nor those that cross neither a delay nor a link.
    END_TO_END_SYN_LOSS = "end_to_end_syn_loss", Fraction, "SYNs lost end to end", "SYNs lost";
    /// The same of TCP packets without payload that are no SYNs.
    END_TO_END_ACK_LOSS = "end_to_end_ack_loss", Fraction, "Acknowledgements lost end to end", "ACKs lost";
    /// The same of segments whose payload was sent for the first time.
    END_TO_END_DATA_LOSS = "end_to_end_data_loss", Fraction, "Data lost end to end", "data lost";
    /// The same of segments of whose payload a part had been sent before.
    END_TO_END_RETRANSMISSION_LOSS = "end_to_end_retransmission_loss", Fraction, "Retransmissions lost end to end", "rtx lost";
}

metrics! {
    /// Of programs, what their packets tell in the group's direction, from the servers to the clients.
    pub const FORWARD of Group;

    /// Payload that reached the receiving side in the period, divided by its length: of TCP each byte of sequence space when it arrives first, of UDP and QUIC all bytes of datagrams. Undefined if no packet was seen, or datagrams arrived in fragments.
    PAYLOAD_RATE = "payload_rate", Rate, "Payload that arrived", "payload";
    /// Of the packets of UDP, QUIC's among them, that were *sent* in the period: dropped or lost ones (at any queue, on any wire), divided by the sum of these and those that arrived. Packets in flight at the end do not count. Undefined without such packets.
    DATAGRAM_LOSS = "datagram_loss", Fraction, "Datagrams lost", "datagrams lost";
    /// The least of the round trips of which `tcp_rtt_mean` is the mean.
    TCP_RTT_MIN = "tcp_rtt_min", Delay, "Least round-trip time of TCP", "TCP RTT min";
    /// Round trips of TCP from the hosts that send in this direction, by timestamps (RFC 7323): from the first segment with a value, when it enters the network, to the first acknowledgement of new data that echoes it, when it reaches the sender. The time until the receiver acknowledges is in it, as for TCP itself. Undefined without timestamps.
    TCP_RTT_MEAN = "tcp_rtt_mean", Delay, "Mean round-trip time of TCP", "TCP RTT";
    /// Median of these round trips, from a histogram with three significant digits.
    TCP_RTT_P50 = "tcp_rtt_p50", Delay, "Round-trip time of TCP, median", "TCP RTT p50";
    /// 95th percentile of these round trips, from the same histogram.
    TCP_RTT_P95 = "tcp_rtt_p95", Delay, "Round-trip time of TCP, 95th percentile", "TCP RTT p95";
    /// The least of the round trips of which `quic_rtt_mean` is the mean.
    QUIC_RTT_MIN = "quic_rtt_min", Delay, "Least round-trip time of QUIC", "QUIC RTT min";
    /// Round trips of QUIC by the spin bit (RFC 9000, section 17.4): from one change of its value to the next, in the packets that are sent in this direction, where they enter the network. A time in which an end has nothing to send is in it. Undefined unless of both ends at least 20 packets, and nine in ten, have the value that follows from the packet received last: an endpoint need not spin, and may send random values.
    QUIC_RTT_MEAN = "quic_rtt_mean", Delay, "Mean round-trip time of QUIC", "QUIC RTT";
    /// Median of these round trips, from a histogram with three significant digits.
    QUIC_RTT_P50 = "quic_rtt_p50", Delay, "Round-trip time of QUIC, median", "QUIC RTT p50";
    /// 95th percentile of these round trips, from the same histogram.
    QUIC_RTT_P95 = "quic_rtt_p95", Delay, "Round-trip time of QUIC, 95th percentile", "QUIC RTT p95";
    /// Of the packets that were sent in the period, those with ECT(0) (RFC 3168).
    ECT0 = "ect0", Fraction, "Packets sent with ECT(0)", "ECT(0)";
    /// Of the packets that were sent in the period, those with ECT(1) (RFC 9331).
    ECT1 = "ect1", Fraction, "Packets sent with ECT(1)", "ECT(1)";
    /// Of the packets that were sent in the period, those that had CE before any queue.
    CE_BEFORE = "ce_before", Fraction, "Packets sent with CE", "CE sent";
    /// Of the packets that arrived in the period, those with CE.
    CE_AFTER = "ce_after", Fraction, "Packets that arrived with CE", "CE";
    /// Segments with ECE that the receiving side sent in the period, on connections that agreed on ECN (RFC 3168). Undefined if no handshake of one was seen.
    ECE_SEGMENTS = "ece_segments", Count, "Segments that echo a mark", "ECE";
    /// Segments with CWR that the sending side sent in the period, on such connections.
    CWR_SEGMENTS = "cwr_segments", Count, "Segments that tell a reduction", "CWR";
    /// Marks that the receiving side told in the period by the counter ACE, on connections that agreed on accurate ECN (RFC 9768). The counter has three bits: of more than 5 marks between two segments none are counted, because an overtaken segment looks the same. Undefined if no handshake of one was seen.
    MARKS_TOLD = "marks_told", Count, "Marks told by accurate ECN", "marks told";
}

metrics! {
    /// The same against the group's direction, from the clients to the servers; in the same order.
    pub const BACK of Group;

    /// `payload_rate` against the group's direction.
    BACK_PAYLOAD_RATE = "back_payload_rate", Rate, "Payload that arrived, back", "back payload";
    /// `datagram_loss` against the group's direction.
    BACK_DATAGRAM_LOSS = "back_datagram_loss", Fraction, "Datagrams lost, back", "back datagrams lost";
    /// `tcp_rtt_min` against the group's direction.
    BACK_TCP_RTT_MIN = "back_tcp_rtt_min", Delay, "Least round-trip time of TCP, back", "back TCP RTT min";
    /// `tcp_rtt_mean` against the group's direction.
    BACK_TCP_RTT_MEAN = "back_tcp_rtt_mean", Delay, "Mean round-trip time of TCP, back", "back TCP RTT";
    /// `tcp_rtt_p50` against the group's direction.
    BACK_TCP_RTT_P50 = "back_tcp_rtt_p50", Delay, "Round-trip time of TCP, median, back", "back TCP RTT p50";
    /// `tcp_rtt_p95` against the group's direction.
    BACK_TCP_RTT_P95 = "back_tcp_rtt_p95", Delay, "Round-trip time of TCP, 95th percentile, back", "back TCP RTT p95";
    /// `quic_rtt_min` against the group's direction.
    BACK_QUIC_RTT_MIN = "back_quic_rtt_min", Delay, "Least round-trip time of QUIC, back", "back QUIC RTT min";
    /// `quic_rtt_mean` against the group's direction.
    BACK_QUIC_RTT_MEAN = "back_quic_rtt_mean", Delay, "Mean round-trip time of QUIC, back", "back QUIC RTT";
    /// `quic_rtt_p50` against the group's direction.
    BACK_QUIC_RTT_P50 = "back_quic_rtt_p50", Delay, "Round-trip time of QUIC, median, back", "back QUIC RTT p50";
    /// `quic_rtt_p95` against the group's direction.
    BACK_QUIC_RTT_P95 = "back_quic_rtt_p95", Delay, "Round-trip time of QUIC, 95th percentile, back", "back QUIC RTT p95";
    /// `ect0` against the group's direction.
    BACK_ECT0 = "back_ect0", Fraction, "Packets sent with ECT(0), back", "back ECT(0)";
    /// `ect1` against the group's direction.
    BACK_ECT1 = "back_ect1", Fraction, "Packets sent with ECT(1), back", "back ECT(1)";
    /// `ce_before` against the group's direction.
    BACK_CE_BEFORE = "back_ce_before", Fraction, "Packets sent with CE, back", "back CE sent";
    /// `ce_after` against the group's direction.
    BACK_CE_AFTER = "back_ce_after", Fraction, "Packets that arrived with CE, back", "back CE";
    /// `ece_segments` against the group's direction.
    BACK_ECE_SEGMENTS = "back_ece_segments", Count, "Segments that echo a mark, back", "back ECE";
    /// `cwr_segments` against the group's direction.
    BACK_CWR_SEGMENTS = "back_cwr_segments", Count, "Segments that tell a reduction, back", "back CWR";
    /// `marks_told` against the group's direction.
    BACK_MARKS_TOLD = "back_marks_told", Count, "Marks told by accurate ECN, back", "back marks told";
}

/// What the kernel counts of all TCP connections of a group's hosts.
pub const COUNTED: [&Metric; 4] = [
    RETRANSMISSIONS,
    FAST_RECOVERIES,
    TIMEOUTS,
    SPURIOUS_TIMEOUTS,
];

/// How many metrics packets of programs have in a direction.
pub const SEEN: usize = 17;
const _: () = assert!(FORWARD.len() == SEEN && BACK.len() == SEEN);

metrics! {
    /// Of every group with users.
    pub const OF_USERS of Group;

    /// Users of the group, whether given or found for a `load`.
    USERS = "users", Count, "Users", "users";
    /// Responses that were requested in the period and arrived before it ended.
    RESPONSES = "responses", Count, "Responses", "responses";
    /// Requests whose response had not arrived when the period ended, divided by these and `responses`. Requests of the warm-up that were never answered are among them.
    UNANSWERED = "unanswered", Fraction, "Requests not answered by the end", "unanswered";
    /// `responses` divided by the length of the period.
    TRANSACTION_RATE = "transaction_rate", PerSecond, "Responses per second", "responses";
    /// Mean of the response times of `responses`, exact.
    RESPONSE_TIME_MEAN = "response_time_mean", Delay, "Mean response time", "response";
    /// Standard deviation of the response times of `responses`, exact.
    RESPONSE_TIME_STD = "response_time_std", Delay, "Standard deviation of response time", "response sd";
    /// Median of the response times, from a histogram with three significant digits. Requests that were not answered when the period ended [count too](statistics.md#what-did-not-finish); undefined when it lies beyond what they show.
    RESPONSE_TIME_P50 = "response_time_p50", Delay, "Response time, median", "resp. p50";
    /// 95th percentile of the response times, as the median.
    RESPONSE_TIME_P95 = "response_time_p95", Delay, "Response time, 95th percentile", "resp. p95";
    /// 99th percentile of the response times, as the median.
    RESPONSE_TIME_P99 = "response_time_p99", Delay, "Response time, 99th percentile", "resp. p99";
    /// Response time divided by the smallest possible response time, averaged over `responses`. The smallest possible time is one round trip without queueing (two if the connection was opened for the request), plus the server's time, plus the transmission time of the response's packets, with headers, at the rate of the slowest link on their path. Slow start alone makes the slowdown more than 1.
    SLOWDOWN_MEAN = "slowdown_mean", Ratio, "Mean slowdown of responses", "slowdown";
    /// Median of the slowdown, with unanswered requests as in `response_time_p50`.
    SLOWDOWN_P50 = "slowdown_p50", Ratio, "Slowdown of responses, median", "slowdown p50";
    /// 99th percentile of the slowdown, as the median.
    SLOWDOWN_P99 = "slowdown_p99", Ratio, "Slowdown of responses, 99th percentile", "slowdown p99";
    /// Connections opened in the period.
    CONNECTIONS = "connections", Count, "Connections opened", "opened";
    /// Open connections, weighted by time.
    CONNECTIONS_MEAN = "connections_mean", Count, "Mean number of open connections", "connections";
}

metrics! {
    /// Of a group with a load. It is measured before the runs, by trial runs; results add it.
    pub const OF_LOAD of Group;

    /// For a group with a `load`: the share of its first bottleneck link that its packets would use on an uncongested network, in the same period and with the same seeds as the run ([how it is measured](../how-to/offered-load.md)).
    OFFERED_LOAD = "offered_load", Fraction, "Offered load", "offered";
}

metrics! {
    /// Of a run in real time.
    pub const OF_REAL_TIME of Run;

    /// How late the network handed packets to their receivers, after the end of their delays: median over the packets of the measurement period.
    WAKEUP_ERROR_P50 = "wakeup_error_p50", Delay, "Lateness of the network, median", "late p50";
    /// 99th percentile of the same lateness. A run in which it is more than 4 ms is invalid.
    WAKEUP_ERROR_P99 = "wakeup_error_p99", Delay, "Lateness of the network, 99th percentile", "late p99";
    /// The greatest lateness. A run in which it is more than 100 ms is invalid.
    WAKEUP_ERROR_MAX = "wakeup_error_max", Delay, "Greatest lateness of the network", "late max";
    /// How late the programs of the hosts acted when a timer expired: 99th percentile over the timers of the measurement period. A run in which it is more than 4 ms is invalid.
    TIMER_ERROR_P99 = "timer_error_p99", Delay, "Lateness of the hosts' timers, 99th percentile", "timers late p99";
    /// Bits of IP packets that the network handed to the receivers of data in the measurement period, by the real clock, divided by the length of the period.
    ACHIEVED_RATE = "achieved_rate", Rate, "Achieved rate", "achieved";
    /// The largest packet that a host sent, IP header included. It is at most a full segment as long as nothing is merged.
    LARGEST_PACKET = "largest_packet", Bytes, "Largest packet", "largest";
}

metrics! {
    /// Of a run in a virtual machine.
    pub const OF_VIRTUAL_MACHINE of Run;

    /// The share of the run in which the virtual machine had nothing to do. Its processor executes one instruction in each nanosecond of its time; what takes it long delays packets. A run in which the share is less than 0.5 is invalid; one with programs, if it is less than 0.1, or with what these compute less than 0.5.
    IDLE_SHARE = "idle_share", Fraction, "Idle share of the virtual machine", "idle";
}

/// A metric, and what must be in an experiment for it to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The definition.
    pub metric: &'static Metric,
    /// What measures it.
    pub owner: Owner,
    /// What has it, in words: "every link", "UDP groups", "groups of kind voip".
    pub of: String,
}

/// What measures a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The engine, at links.
    Link,
    /// The engine or a kind of traffic, of groups.
    Group,
    /// A queue.
    Queue,
    /// The engine, of a run.
    Run,
}

/// Every metric there is, each once, but for what queues of users name themselves.
pub fn catalog() -> Vec<Listed> {
    let rooms: [(Owner, &str, &[&'static Metric]); 25] = [
        (Owner::Link, "every link", AT_LINK),
        (Owner::Link, "links with TCP groups", OF_CONGESTION),
        (Owner::Link, "links with UDP groups", OF_UDP_AT_LINK),
        (
            Owner::Link,
            "links with wire.loss or wire.limit",
            OF_WIRE_LOSS,
        ),
        (Owner::Link, "links with wire.duplicate", OF_WIRE_COPIES),
        (
            Owner::Link,
            "links with reordering on the wire",
            OF_WIRE_ORDER,
        ),
        (
            Owner::Link,
            "links with a wire that holds packets",
            OF_WIRE_DELAY,
        ),
        (Owner::Link, "links with a policer", OF_POLICER),
        (
            Owner::Link,
            "links with TCP groups, with record",
            OF_CLASSES_AT_LINK,
        ),
        (Owner::Group, "TCP groups", OF_TCP_AND_ALL),
        (Owner::Group, "groups without users", OF_FLOWS_AND_ALL),
        (Owner::Group, "every group", OF_GROUP),
        (Owner::Run, "phases", OF_PHASE),
        (Owner::Group, "TCP groups", OF_TCP),
        (Owner::Group, "UDP groups", OF_UDP),
        (
            Owner::Group,
            "UDP groups, and TCP groups with record",
            ONE_WAY,
        ),
        (Owner::Group, "groups with record", OF_VARIATION),
        (Owner::Group, "TCP groups with record", OF_ROUND_TRIPS),
        (Owner::Group, "TCP groups with record", OF_CLASSES),
        (Owner::Group, "groups of programs", FORWARD),
        (Owner::Group, "groups of programs", BACK),
        (Owner::Group, "groups with users", OF_USERS),
        (Owner::Group, "groups with a load", OF_LOAD),
        (Owner::Run, "runs in real time", OF_REAL_TIME),
        (Owner::Run, "runs in a virtual machine", OF_VIRTUAL_MACHINE),
    ];
    let listed = |owner: Owner, of: String, list: &[&'static Metric]| -> Vec<Listed> {
        let each = list.iter();
        each.map(|metric| Listed {
            metric,
            owner,
            of: of.clone(),
        })
        .collect()
    };
    let mut found = Vec::new();
    for (owner, of, list) in rooms {
        found.extend(listed(owner, of.to_owned(), list));
    }
    for (kind, list) in TrafficParams::metrics() {
        found.extend(listed(Owner::Group, format!("groups of kind {kind}"), list));
    }
    let mut of_queues: Vec<(&'static Metric, Vec<&str>)> = Vec::new();
    for (kind, lists) in QueueParams::METRICS {
        for metric in lists.iter().copied().flatten() {
            match of_queues.iter_mut().find(|(known, _)| known == metric) {
                Some((_, kinds)) => kinds.push(kind),
                None => of_queues.push((metric, vec![kind])),
            }
        }
    }
    for (metric, kinds) in of_queues {
        let of = format!("queues of kind {}", kinds.join(", "));
        found.extend(listed(Owner::Queue, of, &[metric]));
    }
    found
}

/// The names of the metrics that runs of a scenario can have.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Each with its definition. A metric is left out of a run in which it is undefined.
    pub known: Vec<(String, &'static Metric)>,
    /// What stands in front of names that queues and endpoints of the user's own choose.
    pub open: Vec<String>,
}

impl Names {
    /// Each known name with the place of its definition in the [`catalog`].
    pub fn places(self) -> Vec<(String, usize)> {
        let catalog = catalog();
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, listed) in catalog.iter().enumerate() {
            by_name.entry(listed.metric.name).or_default().push(place);
        }
        let known = self.known.into_iter().map(|(name, metric)| {
            let alike = by_name.get(metric.name).into_iter().flatten();
            let mut places = alike.filter(|&&place| catalog[place].metric == metric);
            (
                name,
                *places.next().expect("the catalogue has every metric"),
            )
        });
        known.collect()
    }

    fn add(&mut self, prefix: &str, lists: &[&[&'static Metric]]) {
        for metric in lists.iter().copied().flatten() {
            self.known
                .push((format!("{prefix}{}", metric.name), metric));
        }
    }
}

/// Whether all packets of a group are UDP.
pub fn is_udp(group: &TrafficParams) -> bool {
    group.tcp().is_none() && group.programs().is_none()
}

/// The names of the metrics that runs of `scenario` can have.
pub fn names(scenario: &Scenario) -> Names {
    let mut names = Names::default();
    let is_tcp = |group: &TrafficParams| group.tcp().is_some();
    let any_tcp = scenario.traffic.iter().any(is_tcp);
    let any_udp = scenario.traffic.iter().any(is_udp);
    let at_links = |names: &mut Names, phase: &str| {
        for (prefix, _) in links(scenario) {
            let prefix = format!("{phase}{prefix}");
            names.add(&prefix, &[AT_LINK]);
            if any_tcp {
                names.add(&prefix, &[OF_CONGESTION]);
            }
            if any_udp {
                names.add(&prefix, &[OF_UDP_AT_LINK]);
            }
            for group in &scenario.traffic {
                names.add(&format!("{prefix}{}.", group.access().name), &[AT_LINK]);
            }
        }
        for group in scenario.traffic.iter().filter(|group| is_tcp(group)) {
            let prefix = format!("{phase}{}.", group.access().name);
            names.add(&prefix, &[OF_TCP_AND_ALL]);
        }
        if any_tcp {
            names.add(phase, &[OF_TCP_AND_ALL]);
        }
        add_recorded(names, scenario, phase);
    };
    at_links(&mut names, "");
    for (prefix, link) in links(scenario) {
        if let Some(wire) = &link.wire {
            if wire.loss.is_some() || wire.limit.is_some() {
                names.add(&prefix, &[OF_WIRE_LOSS]);
            }
            if wire.duplicate.is_some() {
                names.add(&prefix, &[OF_WIRE_COPIES]);
            }
            if wire.reorders() {
                names.add(&prefix, &[OF_WIRE_ORDER]);
            }
            if wire.holds() {
                names.add(&prefix, &[OF_WIRE_DELAY]);
            }
        }
        if link.policer.is_some() {
            names.add(&prefix, &[OF_POLICER]);
        }
        let mut figures = FigureNames::default();
        link.queue.figures(&mut figures);
        let full = |name: &str| format!("{prefix}queue.{name}");
        let known = figures.known.iter();
        names
            .known
            .extend(known.map(|(name, metric)| (full(name), *metric)));
        names
            .open
            .extend(figures.open.iter().map(|name| full(name)));
    }
    for group in &scenario.traffic {
        let prefix = format!("{}.", group.access().name);
        names.add(&prefix, &[OF_GROUP]);
        if group.programs().is_some() {
            names.add(&prefix, &[FORWARD, BACK, &COUNTED]);
            continue; // what programs tell themselves is not measured here
        }
        match is_tcp(group) {
            true => names.add(&prefix, &[OF_TCP]),
            false => names.add(&prefix, &[OF_UDP, ONE_WAY]),
        }
        if group.has_users() {
            names.add(&prefix, &[OF_USERS]);
        } else {
            names.add(&prefix, &[OF_FLOWS_AND_ALL]);
        }
        names.add(&prefix, &[group.own_metrics()]);
        if group.flow_kind(0) == FlowKind::Own {
            names.open.push(format!("{prefix}endpoint."));
        }
    }
    if scenario
        .traffic
        .iter()
        .any(|group| is_tcp(group) && !group.has_users())
    {
        names.add("", &[OF_FLOWS_AND_ALL]);
    }
    if !scenario.phases.is_empty() {
        for number in 1..=scenario.phases.len() + 1 {
            let phase = format!("phase{number}.");
            names.add(&phase, &[OF_PHASE]);
            at_links(&mut names, &phase);
        }
    }
    names
}

/// Adds what `record` asks for; `phase` is the prefix of a phase, or empty.
fn add_recorded(names: &mut Names, scenario: &Scenario, phase: &str) {
    let groups = scenario.traffic.iter();
    let groups = groups.filter(|group| group.programs().is_none());
    for record in &scenario.record {
        for group in groups.clone() {
            let name = group.access().name;
            let prefix = format!("{phase}{name}.");
            match (record, group.tcp().is_some()) {
                (Record::OneWayDelay, is_tcp) => {
                    if is_tcp || !phase.is_empty() {
                        names.add(&prefix, &[ONE_WAY]);
                    }
                    names.add(&prefix, &[OF_VARIATION]);
                }
                (Record::RoundTrip, true) => names.add(&prefix, &[OF_ROUND_TRIPS]),
                (Record::LossByClass, true) => {
                    names.add(&prefix, &[OF_CLASSES]);
                    for (link, _) in links(scenario) {
                        names.add(&format!("{phase}{link}{name}."), &[OF_CLASSES_AT_LINK]);
                    }
                }
                (_, false) => {}
            }
        }
        let any_tcp = groups.clone().any(|group| group.tcp().is_some());
        if *record == Record::LossByClass && any_tcp {
            for (link, _) in links(scenario) {
                names.add(&format!("{phase}{link}"), &[OF_CLASSES_AT_LINK]);
            }
        }
    }
}

/// The links with queues, each with the prefix of its metrics.
fn links(scenario: &Scenario) -> Vec<(String, LinkParams)> {
    let mut found = Vec::new();
    for (i, hop) in scenario.topology.hops().iter().enumerate() {
        let prefix = |direction| scenario.topology.link_prefix(i, direction);
        found.push((prefix(Direction::Forward), hop.forward()));
        let back = hop.return_link.as_ref();
        found.extend(back.map(|link| (prefix(Direction::Reverse), link.clone())));
    }
    found
}
