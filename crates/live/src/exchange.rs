//! What the command and the process that makes a run tell each other: an agent in a virtual machine, or one in
//! namespaces of this computer.
//!
//! A reply comes from where programs of users, or a whole guest, have run. So it is data: a message of these types,
//! whole, whose tables agree with themselves ([`RunResult::inconsistency`]), or it is refused.

use redtail_core::{Span, Time};
use redtail_network::result::RunResult;
use redtail_traffic::table::{TraceTable, TracedConnection, TracedExchange};
use serde::{Deserialize, Serialize};

use crate::pairs::report::ProgramReport;

/// What the agent is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Asked {
    /// A run.
    Run(Request),
    /// To run programs, one after the other, each a list of its name and its arguments.
    Programs(Vec<Vec<String>>),
}

/// What a program has printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Printed {
    /// The exit code of the program; `None` if a signal has ended it.
    pub code: Option<i32>,
    /// To standard output.
    pub output: String,
    /// To standard error.
    pub errors: String,
}

/// A run to be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The scenario as JSON text; its seed and its replication begin the kernel's random numbers as well.
    pub scenario: String,
    /// Whether links have the kernel's own queues, in place of redtail's.
    pub kernel_queues: bool,
    /// The tables of connections that the scenario names.
    pub tables: Vec<Table>,
    /// The files that its programs take along: the SHA-256 in hexadecimal digits, and the content.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A table of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    name: String,
    /// Start, round-trip time, direction and first exchange of each connection; times in picoseconds.
    connections: Vec<(u64, Option<u64>, bool, u32)>,
    /// Request, response, service time and think time of each exchange.
    exchanges: Vec<(u64, u64, u64, u64)>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The run came to its end.
    Ran {
        /// What was measured.
        result: Box<RunResult>,
        /// Why it must not be used; `None` if it is valid.
        invalid: Option<String>,
        /// The exit code of the user's program; `None` without one, or if the run ended first.
        code: Option<i32>,
        /// What the programs of groups left, in the order of the groups, of their pairs, and server before client.
        programs: Vec<ProgramReport>,
    },
    /// All programs were run; what each has printed.
    Printed(Vec<Printed>),
    /// The run failed.
    Failed {
        /// Where.
        at: Failure,
        /// For this reason.
        reason: String,
    },
}

/// What a run failed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// A step that the kernel refused.
    Kernel,
    /// The experiment, or a file that it names.
    Experiment,
    /// A queue of the user.
    Queue,
    /// The engine.
    Engine,
    /// A program of a group.
    Program,
}

impl Failure {
    /// All of them, with their names.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Kernel, "kernel"),
        (Self::Experiment, "experiment"),
        (Self::Queue, "queue"),
        (Self::Engine, "engine"),
        (Self::Program, "program"),
    ];

    /// The name of the failure in replies.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(each, _)| *each == self);
        found.expect("all are in the list").1
    }

    /// The one of this name.
    pub fn of(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, each)| *each == name);
        found.map(|&(each, _)| each)
    }
}

impl From<&TraceTable> for Table {
    fn from(table: &TraceTable) -> Self {
        let connections = table.connections().iter();
        let exchanges = table.exchanges().iter();
        Self {
            name: table.name().to_owned(),
            connections: connections
                .map(|it| {
                    let start = it.start.as_ps();
                    (start, it.rtt.map(Span::as_ps), it.reverse, it.first)
                })
                .collect(),
            exchanges: exchanges
                .map(|it| {
                    let (service, think) = (it.service.as_ps(), it.think.as_ps());
                    (it.request, it.response, service, think)
                })
                .collect(),
        }
    }
}

impl From<&Table> for TraceTable {
    fn from(table: &Table) -> Self {
        let connections = table.connections.iter();
        let exchanges = table.exchanges.iter();
        Self::new(
            &table.name,
            connections
                .map(|&(start, rtt, reverse, first)| TracedConnection {
                    start: Time::from_ps(start),
                    rtt: rtt.map(Span::from_ps),
                    reverse,
                    first,
                })
                .collect(),
            exchanges
                .map(|&(request, response, service, think)| TracedExchange {
                    request,
                    response,
                    service: Span::from_ps(service),
                    think: Span::from_ps(think),
                })
                .collect(),
        )
    }
}

/// A message as bytes.
///
/// # Panics
/// Never: all values of these types can be written.
pub fn to_bytes<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_stdvec(message).expect("these types can be written")
}

/// The message in these bytes. It takes no more memory than some times their number.
///
/// # Errors
/// When they are none, or more than one.
pub fn from_bytes<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, postcard::Error> {
    match postcard::take_from_bytes(bytes)? {
        (message, []) => Ok(message),
        _ => Err(postcard::Error::DeserializeBadEncoding),
    }
}

/// The reply in these bytes.
///
/// # Errors
/// When they are none, or the tables of its result do not agree with themselves.
pub fn reply_from_bytes(bytes: &[u8]) -> Result<Reply, String> {
    let reply = from_bytes(bytes).map_err(|error| error.to_string())?;
    match &reply {
        Reply::Ran {
            result, programs, ..
        } => match (result.inconsistency())
            .or_else(|| programs.iter().find_map(ProgramReport::inconsistency))
        {
            Some(why) => Err(why),
            None => Ok(reply),
        },
        _ => Ok(reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_the_same_on_the_other_side() {
        let connection = |start, rtt, first| TracedConnection {
            start: Time::from_ps(start),
            rtt,
            reverse: rtt.is_none(),
            first,
        };
        let exchange = |request| TracedExchange {
            request,
            response: 1,
            service: Span::from_ms(2),
            think: Span::ZERO,
        };
        let table = TraceTable::new(
            "a hash",
            vec![
                connection(0, Some(Span::from_ms(30)), 0),
                connection(5, None, 2),
            ],
            vec![exchange(100), exchange(200), exchange(300)],
        );
        let request = Request {
            tables: vec![Table::from(&table)],
            ..Request::default()
        };
        let received: Request = from_bytes(&to_bytes(&request)).expect("it is a request");
        assert_eq!(TraceTable::from(&received.tables[0]), table);
    }

    #[test]
    fn values_that_are_not_numbers_arrive() {
        let mut result = RunResult::default();
        result.metrics.push(("loss".to_owned(), f64::NAN));
        result.metrics.push(("ssthresh".to_owned(), f64::INFINITY));
        let reply = Reply::Ran {
            result: Box::new(result),
            invalid: None,
            code: None,
            programs: Vec::new(),
        };
        let Ok(Reply::Ran { result, .. }) = from_bytes(&to_bytes(&reply)) else {
            panic!("it is a result");
        };
        assert!(result.metrics[0].1.is_nan());
        assert_eq!(result.metrics[1].1, f64::INFINITY);
    }

    #[test]
    fn programs_and_what_they_printed_arrive() {
        let asked = Asked::Programs(vec![vec!["tc".to_owned(), "qdisc".to_owned()], Vec::new()]);
        assert_eq!(from_bytes(&to_bytes(&asked)), Ok(asked));
        let printed = |code| Printed {
            code,
            output: "a\nb".to_owned(),
            errors: String::new(),
        };
        let reply = Reply::Printed(vec![printed(Some(2)), printed(None)]);
        assert_eq!(from_bytes(&to_bytes(&reply)), Ok(reply));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(from_bytes::<Reply>(&[]).is_err());
        assert!(from_bytes::<Reply>(&[9, 1, 2]).is_err());
    }
}
