//! Control laws: what a queue observes becomes pass, mark or drop.
//!
//! A law knows no packets, no clock and no randomness of its own, so a program with its own queue can use it as it is.
//! The caller keeps the packets; it tells the law what it sees, with the time or the random number that the law asks
//! for as arguments, and does what the law decides. Calls come with non-decreasing times. A law has no errors: its
//! configuration is a struct of numbers whose ranges the parameters of the queue check (`QueueParams::check`), and with
//! numbers outside of them its decisions mean nothing. What panics says so.
//!
//! | law | told | answers | source |
//! |---|---|---|---|
//! | [`codel::CodelLaw`] | of each departing packet its wait, as [`Span`](redtail_core::Span), and the bytes behind it | pass, mark or drop | RFC 8289 |
//! | [`cobalt::CobaltLaw`] | of each departing packet its wait; overflows | pass, mark or drop | CAKE |
//! | [`pie::PieLaw`] | arrivals, departures, and the backlog in bytes in each interval | pass, mark or drop at arrival | RFC 8033 |
//! | [`docsis_pie::DocsisPieLaw`] | arrivals, and the backlog and tokens in bytes in each interval | whether to drop at arrival | RFC 8034 |
//! | [`pi::PiLaw`] | a length or a delay in each interval, in a unit of the caller's | a probability | Hollot, Misra, Towsley and Gong 2001 |
//! | [`red::RedLaw`] | the backlog that each arrival finds, in packets or bytes | pass, early or forced | Floyd and Jacobson 1993 |
//! | [`red_tail`] | the flow of each arrival | short or long, and whose turn it is | Jou and Baras 2003 |
//! | [`token_bucket::TokenBucket`] | sizes of what is sent | when so much may be sent | |
//! | [`meter::Meter`] | the size of each arrival | green, yellow or red | RFC 2697, RFC 2698 |
//! | [`ack_filter`] | TCP headers of two acknowledgements | whether one makes the other redundant | Linux |
//!
//! The head of each file has the formulas, with symbol, unit and meaning.

pub mod ack_filter;
pub mod cobalt;
pub mod codel;
pub mod docsis_pie;
pub mod meter;
pub mod pi;
pub mod pie;
pub mod red;
pub mod red_tail;
pub mod token_bucket;
