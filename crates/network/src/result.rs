//! The result of a run.

use redtail_spec::EventKind;
use serde::{Deserialize, Serialize};

/// The number of a name among those that were met, to which a new one is added.
pub fn number_of<'a, T: PartialEq<&'a str> + From<&'a str>>(
    met: &mut Vec<T>,
    name: &'a str,
) -> u32 {
    let known = met.iter().position(|known| *known == name);
    let number = known.unwrap_or_else(|| {
        met.push(name.into());
        met.len() - 1
    });
    number as u32
}

/// The values of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the names are the types' names
pub enum Column<'a> {
    F64(&'a [f64]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

impl Column<'_> {
    /// The number of its values.
    #[allow(clippy::len_without_is_empty)] // nobody asks for it
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }
}

impl<'a> From<&'a Vec<f64>> for Column<'a> {
    fn from(values: &'a Vec<f64>) -> Self {
        Self::F64(values)
    }
}

impl<'a> From<&'a Vec<u32>> for Column<'a> {
    fn from(values: &'a Vec<u32>) -> Self {
        Self::U32(values)
    }
}

impl<'a> From<&'a Vec<u64>> for Column<'a> {
    fn from(values: &'a Vec<u64>) -> Self {
        Self::U64(values)
    }
}

/// A table of a result: a struct of columns, whose names are those of its fields.
macro_rules! rows {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[$doc:meta])* $column:ident: $kind:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[allow(missing_docs)] // the names are the columns' names
        pub struct $name {
            $($(#[$doc])* pub $column: Vec<$kind>,)*
        }

        impl $name {
            /// The columns with their names, in their order.
            pub fn columns(&self) -> Vec<(&'static str, Column<'_>)> {
                vec![$((stringify!($column), Column::from(&self.$column)),)*]
            }

            /// The same rows in the order in which `places` names them.
            pub fn in_order(&self, places: &[usize]) -> Self {
                Self {
                    $($column: places.iter().map(|&place| self.$column[place]).collect(),)*
                }
            }

            /// Adds the rows of another table of this kind.
            pub fn append(&mut self, other: &Self) {
                $(self.$column.extend_from_slice(&other.$column);)*
            }
        }
    };
}

rows! {
    /// Samples of every queue, a row per link and sampling time.
    QueueSeries {
        time_s: f64,
        /// Index into [`RunResult::links`].
        link: u32,
        packets: f64,
        bytes: f64,
        /// The control law's average, in the unit of its thresholds; NaN without one.
        average: f64,
        /// The control law's probability; NaN without one.
        probability: f64,
        /// Packets that arrived since the sample before, as the next two.
        arrivals: u64,
        /// Packets that the queue dropped.
        drops: u64,
        /// Packets that the queue marked (ECN).
        marks: u64,
        /// Mean queueing delay of the packets whose transmission began since the sample before; NaN
        /// without any.
        delay_s: f64,
    }
}

rows! {
    /// Samples of every TCP flow, a row per flow and sampling time.
    FlowSeries {
        time_s: f64,
        /// Number of the flow, counted over all groups in the order of the file.
        flow: u32,
        /// Index into [`RunResult::groups`].
        group: u32,
        cwnd_bytes: f64,
        /// Infinite before the first reduction.
        ssthresh_bytes: f64,
        in_flight_bytes: f64,
        /// NaN before the first sample.
        srtt_s: f64,
        /// NaN for a sender that does not pace, or that has no rate yet.
        pacing_rate_bps: f64,
        /// Bytes delivered in order to the receiver's application since the start of the run.
        delivered_bytes: u64,
        /// Index into [`RunResult::states`].
        state: u32,
    }
}

rows! {
    /// Figures of controllers of users, a row per flow, figure and sampling time.
    ControllerSeries {
        time_s: f64,
        /// Number of the flow, counted over all groups in the order of the file.
        flow: u32,
        /// Index into [`RunResult::groups`].
        group: u32,
        /// Index into [`RunResult::figures`].
        figure: u32,
        value: f64,
    }
}

rows! {
    /// Every sized transfer, a row for each, whether it completed or not. Times count
    /// from its start and are NaN where the run ended before.
    Transfers {
        /// Index into [`RunResult::groups`].
        group: u32,
        /// Number of the flow, counted over all groups in the order of the file.
        flow: u32,
        /// What it transfers.
        size_bytes: u64,
        /// From the start of the run.
        start_s: f64,
        /// From the first SYN to the arrival of the SYN-ACK; NaN without a handshake.
        handshake_time_s: f64,
        /// To the delivery of the first byte at the receiver.
        first_byte_time_s: f64,
        /// To the arrival of the acknowledgement of the last byte; that of the FIN does
        /// not count.
        completion_time_s: f64,
        /// Over the whole run, warm-up included, as the next.
        retransmissions: u64,
        /// NaN where a kernel does not tell.
        timeouts: f64,
    }
}

rows! {
    /// How long users waited for responses: counts by group, size and time. Bins are the same in every
    /// run, 50 to a factor of ten; empty ones are left out.
    ResponseTimes {
        /// Index into [`RunResult::groups`].
        group: u32,
        /// Upper end of the class of sizes; infinite for the last.
        size_up_to_bytes: f64,
        /// Upper end of the bin.
        time_up_to_s: f64,
        count: u64,
    }
}

rows! {
    /// What the receivers of each group got, a row per group and sampling time.
    GroupSeries {
        time_s: f64,
        /// Index into [`RunResult::groups`].
        group: u32,
        /// Since the sample before: of TCP, bytes delivered in order to applications; of UDP, bytes
        /// of packets, headers included. NaN at the first sample.
        goodput_bps: f64,
    }
}

rows! {
    /// The event log: a row for each event, in the order of time. What an event does not say is NaN, or the largest
    /// number of the type.
    EventRows {
        time_s: f64,
        /// Index into [`EventKind::ALL`](redtail_spec::EventKind::ALL).
        event: u32,
        /// Index into [`EventLog::reasons`].
        reason: u32,
        /// Index into [`RunResult::links`].
        link: u32,
        /// Index into [`RunResult::groups`].
        group: u32,
        /// Number of the flow, counted over all groups in the order of the file; of a user's connection that of the user.
        flow: u32,
        /// Number of a user's connection, in the order of their opening.
        connection: u64,
        /// Of a packet: 0 from the side that sends data or serves, 1 back to it. Of a sender of a user's connection the
        /// same: 0 that of the server.
        back: u32,
        /// Identification in the IP header: number of the packet at its sender, modulo 2^16.
        packet: u32,
        /// Of data: the number of its first byte, counted from 0 in the stream of its sender.
        sequence: u64,
        /// Of a packet its size with headers; of a retransmission its data.
        bytes: u64,
        /// How long the packet had waited in the queue.
        wait_s: f64,
        /// The control law's average after the event, in the unit of its thresholds.
        average: f64,
        /// The control law's probability after the event.
        probability: f64,
        /// The congestion window after the event.
        cwnd_bytes: f64,
        /// Infinite before the first reduction.
        ssthresh_bytes: f64,
        /// What it is depends on the kind of event ([`EventMeaning`](redtail_spec::EventMeaning)).
        value: f64,
    }
}

rows! {
    /// Every flow, a row for each: TCP and UDP flows in the order of the file, then the connections
    /// of users in the order of their opening. NaN stands for what does not exist for a flow, and for
    /// what is not known. Counts are of the measurement period.
    FlowRows {
        /// Index into [`RunResult::groups`].
        group: u32,
        /// Number of the flow, counted over all groups in the order of the file. A connection of a
        /// user has the number under which queues knew it, which later ones may have had too.
        flow: u32,
        /// Number of its host in the group.
        host: u32,
        /// Round-trip time without queueing and transmission.
        round_trip_s: f64,
        /// From the start of the run.
        start_s: f64,
        /// From the start to the acknowledgement of the last byte of a sized transfer, or until both
        /// sides of a user's connection have closed; NaN if it did not happen.
        completion_time_s: f64,
        /// How long the flow was active in the measurement period: from its start to its end.
        active_s: f64,
        /// TCP: bytes delivered in order, to the user if it is a user's connection. UDP: bytes of the
        /// packets received, headers included.
        delivered_bytes: f64,
        /// Of `delivered_bytes` in `active_s`; NaN for a flow that was not active.
        goodput_bps: f64,
        /// Packets sent in the direction of the data; by both sides of a user's connection.
        sent_packets: f64,
        /// Of these, packets that queues dropped and wires lost.
        lost_packets: f64,
        /// Packets that queues marked (ECN); one that two queues mark counts twice.
        marked_packets: f64,
        /// Segments, of both sides of a user's connection, as the next.
        retransmissions: f64,
        timeouts: f64,
        /// Of the round-trip samples that the sender of the data took; NaN without any.
        rtt_mean_s: f64,
        rtt_min_s: f64,
    }
}

rows! {
    /// Distributions of times: counts by distribution and time. Bins are the same in every run, 100 to
    /// a factor of ten, and one for zero; empty ones are left out.
    HistogramRows {
        /// Index into [`Histograms::names`].
        distribution: u32,
        /// Upper end of the bin.
        up_to_s: f64,
        count: u64,
    }
}

/// Distributions of times with their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// What each is of, as metrics are named: `queue_delay`, `ftp.queue_delay`, `calls.one_way_delay`.
    pub names: Vec<String>,
    /// The counts.
    pub rows: HistogramRows,
}

/// The event log of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventLog {
    /// The events.
    pub rows: EventRows,
    /// Names of the reasons in `rows`.
    pub reasons: Vec<String>,
}

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Metrics by name, in SI units and fractions. A metric that is undefined
    /// (a loss rate without arrivals) is left out.
    pub metrics: Vec<(String, f64)>,
    /// For each link: how many loss events had 1, 2, 3 … packets.
    pub consecutive_losses: Vec<Vec<u64>>,
    /// Names of the links with queues.
    pub links: Vec<String>,
    /// Names of the traffic groups.
    pub groups: Vec<String>,
    /// Names of the states that sampled flows were in.
    #[serde(default)]
    pub states: Vec<String>,
    /// Queue samples, if asked for.
    pub queue_series: Option<QueueSeries>,
    /// Flow samples, if asked for.
    pub flow_series: Option<FlowSeries>,
    /// Samples of the controllers of users, if asked for and if there are any.
    pub controller_series: Option<ControllerSeries>,
    /// Names of the figures in `controller_series`.
    pub figures: Vec<String>,
    /// Samples of the groups, if asked for.
    pub group_series: Option<GroupSeries>,
    /// The event log, if asked for.
    #[serde(default)]
    pub event_log: Option<EventLog>,
    /// Every flow, unless there were more than are kept.
    pub flows: Option<FlowRows>,
    /// Distributions of times.
    pub histograms: Histograms,
    /// Every sized transfer.
    pub transfers: Transfers,
    /// Response times of every group that has users.
    pub response_times: ResponseTimes,
    /// Packets transmitted by the links of the forward direction, warm-up included.
    pub bottleneck_packets: u64,
    /// Events processed.
    pub events: u64,
}

impl RunResult {
    /// How the parts of the result contradict each other; `None` if they do not. No run makes such a result:
    /// it is one that was sent by somebody else.
    pub fn inconsistency(&self) -> Option<String> {
        let (links, groups) = (self.links.len(), self.groups.len());
        let distributions = self.histograms.names.len();
        if self.consecutive_losses.len() != links {
            return Some(format!(
                "it has loss events of {} links, and names {links}",
                self.consecutive_losses.len()
            ));
        }
        let tables = [
            self.queue_series.as_ref().map(QueueSeries::columns),
            self.flow_series.as_ref().map(FlowSeries::columns),
            self.controller_series
                .as_ref()
                .map(ControllerSeries::columns),
            self.group_series.as_ref().map(GroupSeries::columns),
            self.flows.as_ref().map(FlowRows::columns),
            Some(self.transfers.columns()),
            Some(self.response_times.columns()),
            Some(self.histograms.rows.columns()),
        ];
        let log = self.event_log.as_ref();
        let reasons = log.map_or(0, |log| log.reasons.len());
        let log = log.map(|log| log.rows.columns());
        let whole = tables.iter().flatten().map(|columns| (columns, false));
        // An event says only what it is of.
        let partly = log.iter().map(|columns| (columns, true));
        for (columns, may_be_unset) in whole.chain(partly) {
            let rows = columns.first().map_or(0, |(_, column)| column.len());
            for (name, column) in columns {
                if column.len() != rows {
                    return Some(format!(
                        "a table has {rows} rows, and {} values of {name}",
                        column.len()
                    ));
                }
                let known = match *name {
                    "link" => links,
                    "group" => groups,
                    "state" => self.states.len(),
                    "distribution" => distributions,
                    "figure" => self.figures.len(),
                    "event" => EventKind::ALL.len(),
                    "reason" => reasons,
                    _ => continue,
                };
                if let Column::U32(codes) = column
                    && let Some(code) = codes.iter().find(|&&code| {
                        code as usize >= known && !(may_be_unset && code == u32::MAX)
                    })
                {
                    return Some(format!("a table has {name} {code}, and there are {known}"));
                }
            }
        }
        None
    }

    /// The metric called `name`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let found = self.metrics.iter().find(|(metric, _)| metric == name);
        found.map(|&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> RunResult {
        RunResult {
            links: vec!["bottleneck".to_owned()],
            groups: vec!["ftp".to_owned()],
            consecutive_losses: vec![vec![1]],
            group_series: Some(GroupSeries {
                time_s: vec![0.0, 1.0],
                group: vec![0, 0],
                goodput_bps: vec![f64::NAN, 1e6],
            }),
            ..RunResult::default()
        }
    }

    #[test]
    fn a_result_that_agrees_with_itself_is_taken() {
        assert_eq!(result().inconsistency(), None);
        assert_eq!(RunResult::default().inconsistency(), None);
    }

    #[test]
    fn columns_of_other_lengths_are_found() {
        let mut forged = result();
        forged
            .group_series
            .as_mut()
            .expect("there is one")
            .time_s
            .pop();
        let why = forged.inconsistency().expect("it is forged");
        assert_eq!(why, "a table has 1 rows, and 2 values of group");
    }

    #[test]
    fn codes_without_a_name_are_found() {
        let mut forged = result();
        forged.group_series.as_mut().expect("there is one").group[1] = 7;
        let why = forged.inconsistency().expect("it is forged");
        assert_eq!(why, "a table has group 7, and there are 1");
    }

    #[test]
    fn an_event_may_be_of_nothing_and_has_a_reason_that_is_named() {
        let mut forged = result();
        let mut log = EventLog::default();
        log.rows.value.push(f64::NAN);
        log.rows.event.push(0);
        for codes in [
            &mut log.rows.reason,
            &mut log.rows.link,
            &mut log.rows.group,
        ] {
            codes.push(u32::MAX);
        }
        for values in [
            &mut log.rows.time_s,
            &mut log.rows.wait_s,
            &mut log.rows.average,
            &mut log.rows.probability,
            &mut log.rows.cwnd_bytes,
            &mut log.rows.ssthresh_bytes,
        ] {
            values.push(0.0);
        }
        for numbers in [
            &mut log.rows.connection,
            &mut log.rows.sequence,
            &mut log.rows.bytes,
        ] {
            numbers.push(0);
        }
        for numbers in [&mut log.rows.flow, &mut log.rows.back, &mut log.rows.packet] {
            numbers.push(0);
        }
        forged.event_log = Some(log);
        assert_eq!(forged.inconsistency(), None);
        forged.event_log.as_mut().expect("it is there").rows.reason[0] = 0;
        let why = forged.inconsistency().expect("it is forged");
        assert_eq!(why, "a table has reason 0, and there are 0");
    }

    #[test]
    fn states_without_a_name_are_found() {
        let mut forged = result();
        let mut rows = FlowSeries::default();
        rows.time_s.push(0.0);
        rows.flow.push(0);
        rows.group.push(0);
        rows.cwnd_bytes.push(1.0);
        rows.ssthresh_bytes.push(1.0);
        rows.in_flight_bytes.push(1.0);
        rows.srtt_s.push(1.0);
        rows.pacing_rate_bps.push(1.0);
        rows.delivered_bytes.push(1);
        rows.state.push(0);
        forged.flow_series = Some(rows);
        let why = forged.inconsistency().expect("it is forged");
        assert_eq!(why, "a table has state 0, and there are 0");
        forged.states.push("startup".to_owned());
        assert_eq!(forged.inconsistency(), None);
    }

    #[test]
    fn losses_of_a_link_without_a_name_are_found() {
        let mut forged = result();
        forged.consecutive_losses.push(Vec::new());
        assert!(forged.inconsistency().is_some());
    }
}
