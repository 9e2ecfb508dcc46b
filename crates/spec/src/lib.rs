//! The experiment file: a text becomes a tree that knows its lines, the tree becomes cases, and
//! each case becomes typed, checked values.
//!
//! It must not know the engine, files, clocks, the environment or Python. All that it reads is given to it.
//!
//! ```text
//! text ------------------- node.rs ------> a tree with a line for each value
//!   --set KEY=VALUE ------ expand.rs ----> overrides, factors, every combination: the cases
//!     each case ---------- rates.rs -----> what traces of rates hold, in the place of their names
//!     each case ---------- de.rs --------> typed values (experiment.rs)
//!     each case ---------- validate.rs --> errors and warnings
//!   plan.rs: cases x replications -------> Scenario, as canonical JSON
//! ```
//!
//! - `mistakes` finds all that does not fit, not the first alone; `words`: words of other programs; `shapes`:
//!   `[traffic]` for `[[traffic]]`; `error`, `origin` and `paths`: messages, places of values, and dotted keys
//! - `templates`: groups that are made many times; `chain` and `shared_hosts`: groups that name hops, and hosts that
//!   several groups share
//! - `replications`: how many runs a case has; `load`: groups that are asked for by their load; `derived`:
//!   metrics by formulas; `expect`: what has to hold of results; `named`: tables with names of the user's; `facts`: what queues may know; `outline`: the summary of `redtail check`
//! - `events`: the kinds of events of a log; `queue`: a queue alone; `format`: the number of the file's format; `schema`: the JSON schema; `texts`: canonical texts of many runs
//!
//! The canonical JSON has every default filled in and is all that the engine sees. Names of experiments and
//! labels of cases are not in it. Nor is what can be large: a table of connections stands beside the scenario,
//! which names it by a hash of its content (`RunOptions::traces` in `crates/sim`, `traces` in Python).
//!
//! ```
//! use redtail_spec::{Plan, PlanOptions};
//!
//! let text = r#"
//!     name = "One flow"
//!     duration = "60 s"
//!     warmup = "10 s"
//!     [bottleneck]
//!     rate = "10 Mbit/s"
//!     delay = "20 ms"
//!     queue = { kind = "tail-drop", limit = "50 packets" }
//!     [[traffic]]
//!     name = "ftp"
//!     kind = "bulk"
//!     [factors]
//!     "bottleneck.rate" = ["1 Mbit/s", "10 Mbit/s"]
//! "#;
//! let file = Some("one-flow.toml");
//! let plan = Plan::from_text(text, PlanOptions { file, ..PlanOptions::default() })?;
//! assert_eq!(plan.cases.len(), 2);
//! assert_eq!(plan.scenario(0, 0).unwrap().topology.hops()[0].rate.to_string(), "1 Mbit/s");
//!
//! let sets = ["warmup=90 s".to_owned()];
//! let options = PlanOptions { file, sets: &sets, ..PlanOptions::default() };
//! let error = Plan::from_text(text, options).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "--set warmup=90 s: warmup = \"90 s\" is not shorter than the duration; \
//!      accepted: less than \"60 s\"",
//! );
//! # Ok::<(), redtail_spec::SpecError>(())
//! ```

pub mod airtime;
mod chain;
mod de;
mod derived;
mod error;
pub mod events;
mod expand;
mod expect;
mod experiment;
mod facts;
mod format;
mod load;
mod mistakes;
mod named;
mod node;
mod origin;
mod outline;
mod overhead;
mod paths;
mod plan;
mod queue;
mod rate_changes;
mod rates;
mod replications;
mod schema;
mod shapes;
mod shared_hosts;
mod templates;
mod texts;
mod validate;
mod wire;
mod words;

pub use airtime::{AirtimeParams, Medium};
pub use de::hint;
pub use derived::{DerivedMetricParams, DerivedMetrics};
pub use error::{Problem, SpecError};
pub use events::{EventKind, EventMeaning, Events, EventsParams};
pub use expect::{ExpectationParams, Expectations};
pub use experiment::{
    ChainParams, Experiment, HopParams, LinkParams, Record, ReportParams, RootParams, Scenario,
    Series, SeriesParams, Topology,
};
pub use format::FORMAT;
pub use load::LoadRequest;
pub use named::NamedTables;
pub use named::Placed;
pub use origin::Origin;
pub use overhead::Overhead;
pub use plan::{Case, Format, Plan, PlanOptions, line_of, no_endpoints};
pub use queue::{queue_from_json, queue_from_text, unit_of_average};
pub use rate_changes::{
    RateChangeParams, RateChanges, RateLawParams, RateSineParams, RateWalkParams,
};
pub use rates::{OPPORTUNITY, Phases, RateTrace};
pub use replications::{Replications, StopRuleParams, Until};
pub use schema::schema;
pub use texts::{CalibratedUsers, ScenarioReader};
pub use validate::{FindTable, TakeFiles, TraceSite};
pub use wire::{
    BatchesParams, DelayChangeParams, DelayChanges, DelayTrace, GilbertElliottParams,
    HandoverParams, Loss, Order, ReorderParams, WireParams,
};
