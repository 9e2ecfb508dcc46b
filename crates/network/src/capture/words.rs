//! What comments of captured packets say.

use std::fmt::Write;

use redtail_qdisc::Internals;
use redtail_spec::{EventKind, LinkParams, Scenario, unit_of_average};

use crate::network::Network;

/// What is known of a link for its comments.
#[derive(Clone, Debug, Default)]
pub struct Words {
    name: String,
    /// The kind of its queue, as in the experiment file.
    kind: String,
    /// The unit of its law's average, with a space before it; empty if it is not known.
    unit: &'static str,
    /// Whether a kernel's queue decides, which tells no reasons.
    pub of_kernel: bool,
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug)]
pub struct Happened {
    /// A drop, a mark, or a loss on the wire.
    pub kind: EventKind,
    /// Why, if there is more than one reason.
    pub reason: Option<&'static str>,
    /// How long it had waited, in seconds; `None` if it had not joined the queue.
    pub waited: Option<f64>,
}

impl Words {
    /// Those of all links of a network.
    pub fn of_links(network: &Network, scenario: &Scenario) -> Vec<Self> {
        let topology = &scenario.topology;
        let known: Vec<(String, LinkParams)> = (topology.links().into_iter())
            .map(|(_, link, hop, direction)| (topology.link_name(hop, direction), link))
            .collect();
        let of_link = |name: &str| {
            let found = known.iter().find(|(known, _)| known == name);
            let queue = found.map(|(_, link)| &link.queue);
            Self {
                name: name.to_owned(),
                kind: queue.map_or(String::new(), |queue| queue.kind().to_owned()),
                unit: match queue.and_then(unit_of_average) {
                    Some("packets") => " packets",
                    Some(_) => " bytes",
                    None => "",
                },
                of_kernel: false,
            }
        };
        (network.links.iter())
            .map(|link| of_link(&link.name))
            .collect()
    }

    /// The comment. The state of the law is that after what happened; `None` if it is not known.
    pub fn comment(&self, happened: Happened, law: Option<Internals>) -> String {
        let Self { name, kind, .. } = self;
        let mut text = match happened.kind {
            EventKind::WireLoss => {
                let key = happened.reason.unwrap_or("loss");
                return format!("lost on the wire after {name} (wire.{key})");
            }
            EventKind::Mark => format!("marked CE at {name}"),
            _ => format!("dropped at {name}"),
        };
        let mut add = |more: std::fmt::Arguments<'_>| text.write_fmt(more).expect("a string");
        if self.of_kernel {
            add(format_args!(
                " by the kernel's queue, which tells no reason"
            ));
        } else {
            if happened.reason == Some("policer") {
                add(format_args!(" by the policer"));
                return text;
            }
            add(format_args!(": {kind}"));
            if let Some(reason) = happened.reason {
                add(format_args!(", {reason}"));
            }
        }
        let law = law.filter(|_| !self.of_kernel).unwrap_or_default();
        if let Some(average) = law.average {
            add(format_args!(", average {average:.1}{}", self.unit));
        }
        if let Some(probability) = law.probability {
            add(format_args!(", probability {probability:.3}"));
        }
        if let Some(waited) = happened.waited {
            add(format_args!(", after {:.3} ms in the queue", waited * 1e3));
        }
        text
    }
}
