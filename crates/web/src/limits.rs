//! What bounds the memory and the time that a page's request takes. All are ours: what people look at in a page is far below.

/// Bytes of a request.
pub const MOST_INPUT: usize = 8 << 20;

/// Bytes of an experiment's text.
pub const MOST_TEXT: usize = 256 << 10;

/// Bytes of all files that an experiment names.
pub const MOST_FILES: usize = 4 << 20;

/// Cases of an experiment.
pub const MOST_CASES: usize = 1000;

/// Flows of a run, users included.
pub const MOST_FLOWS: u64 = 10_000;

/// Rows of a run's time series.
pub const MOST_SAMPLES: u64 = 2_000_000;

/// Events of packets that are recorded.
pub const MOST_EVENTS: u64 = 400_000;

/// Values of which a mean is taken.
pub const MOST_VALUES: usize = 100_000;
