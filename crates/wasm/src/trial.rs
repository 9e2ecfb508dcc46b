//! A plug-in that is made once before a run, to see whether it accepts its `params`.

use std::collections::BTreeMap;
use std::sync::Arc;

use redtail_core::plugin::{Identity, Role, Value};
use redtail_core::{Rate, Stream};
use redtail_qdisc::plugin::{PluginContext, QueueContext};
use redtail_qdisc::{LinkFacts, Plugins};
use redtail_transport::plugin::PluginContext as Connection;

use crate::calls::WrongParam;
use crate::module::Module;

impl Module {
    /// Executes the part of a plug-in that reads `params`: of a queue at a link of 10 Mbit/s without a limit, of a
    /// controller with segments of 1460 bytes. Returns the key that it refuses. What else can fail there depends on the
    /// experiment and is left to the run.
    pub fn wrong_param(
        &self,
        role: Role,
        name: &str,
        params: &BTreeMap<String, Value>,
    ) -> Option<WrongParam> {
        let identity = Identity {
            params: params.clone(),
            ..Identity::default()
        };
        let (cancel, stream) = (Arc::default(), Stream::named(0, 0, name));
        let error = match role {
            Role::Queue => {
                let rate = Rate::from_bps(10_000_000);
                let queue = QueueContext {
                    rate,
                    stream,
                    link: Arc::new(LinkFacts::of_rate(rate)),
                    plugins: Plugins::new(),
                };
                let context = PluginContext { queue, limit: None };
                self.make_queue(name, &identity, context, &cancel).err()
            }
            Role::Controller => {
                let context = Connection {
                    mss: 1460,
                    initial_cwnd: 14_600.0,
                    stream,
                };
                self.make_controller(name, &identity, context, &cancel)
                    .err()
            }
            // No module has one.
            Role::Endpoint => None,
        };
        error?.cause::<WrongParam>().cloned()
    }
}
