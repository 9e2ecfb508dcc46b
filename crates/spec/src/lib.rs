//! The experiment file: a text becomes a tree that knows its lines, the tree becomes cases, and
//! each case becomes typed, checked values.
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
//!
//! Nothing here touches files, clocks or the environment.

mod de;
mod derived;
mod error;
mod expand;
mod experiment;
mod facts;
mod format;
mod load;
mod mistakes;
mod node;
mod origin;
mod outline;
mod paths;
mod plan;
mod rates;
mod replications;
mod schema;
mod shapes;
mod texts;
mod validate;
mod words;

pub use de::hint;
pub use derived::{Derived, DerivedMetricParams, DerivedMetrics};
pub use error::{Problem, SpecError};
pub use experiment::{
    ChainParams, Experiment, HopParams, LinkParams, ReportParams, Scenario, Series, SeriesParams,
    Topology,
};
pub use format::FORMAT;
pub use load::LoadRequest;
pub use origin::Origin;
pub use plan::{Case, Format, Plan, PlanOptions};
pub use rates::{OPPORTUNITY, Phases, RateChangeParams, RateTrace};
pub use replications::{Replications, StopRuleParams, Until};
pub use schema::schema;
pub use texts::{CalibratedUsers, ScenarioReader};
pub use validate::{FindTable, TraceSite};
