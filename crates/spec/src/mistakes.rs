//! All mistakes of an experiment file, and not the first one alone.
//!
//! Decoding stops at the first value that does not fit. This value is then replaced by one that does, in a copy of
//! the tree, and decoding begins anew. What follows from a mistake that has been told is not told again: a key that was
//! replaced is never found wrong, and no check of several keys sees it ([`Known::hides`]).

use crate::de::{self, Fault};
use crate::experiment::Experiment;
use crate::node::Node;

/// The most mistakes of a file that are told.
pub(crate) const MOST: usize = 20;

/// What decoding has found.
pub(crate) struct Decoded {
    /// The experiment, with other values in the place of those that are wrong. `None` if some cannot be replaced.
    pub experiment: Option<Experiment>,
    /// The tree that it was made from.
    pub tree: Node,
    /// What is wrong, in the order in which it was found.
    pub faults: Vec<Fault>,
    /// The keys that were replaced.
    pub known: Known,
}

/// Keys of which it is known that they are wrong.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Vec<String>);

impl Known {
    pub(crate) fn add(&mut self, key: &str) {
        self.0.push(key.to_owned());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a key is one of these, or a part of one, or has one as a part.
    pub(crate) fn touches(&self, key: &str) -> bool {
        self.0
            .iter()
            .any(|known| within(known, key) || within(key, known))
    }

    /// Whether a mistake at `key` may be one only because of these: because a value in the same table, or one
    /// that a check compares it with, was replaced.
    pub(crate) fn hides(&self, key: &str) -> bool {
        let table = key.rsplit_once('.').map_or(key, |(table, _)| table);
        let compared: &[&str] = match key.rsplit('.').next().unwrap_or_default() {
            "warmup" | "phases" | "interval" | "rate_changes" | "stop" => &["duration", "warmup"],
            "direction" | "first_hop" | "last_hop" => &["bottleneck", "chain"],
            "bottleneck" | "chain" | "" => &["bottleneck", "chain"],
            "traffic" => &["traffic"],
            _ => &[],
        };
        self.touches(key) || (key != table && self.touches(table)) || {
            compared.iter().any(|other| self.touches(other))
        }
    }
}

/// Whether a key is `table` or one in it.
pub(crate) fn within(key: &str, table: &str) -> bool {
    let rest = key.strip_prefix(table);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ' ']))
}

/// Decodes a tree, and finds up to `most` mistakes.
///
/// Keys of `known` may be missing: what would have set them is wrong, and this is known.
pub(crate) fn decode(tree: &Node, known: &Known, most: usize) -> Decoded {
    let (mut tree, mut known) = (tree.clone(), known.clone());
    let mut faults: Vec<Fault> = Vec::new();
    let mut found = de::decode::<Experiment>(&tree);
    loop {
        let fault = match found {
            Ok(experiment) => {
                return Decoded {
                    experiment: Some(experiment),
                    tree,
                    faults,
                    known,
                };
            }
            Err(fault) => fault,
        };
        let place = fault.place();
        let last = faults.len() + 1 >= most;
        // With the first tree that is not wrong at this place again.
        let mended = fault
            .mended(&tree)
            .into_iter()
            .filter(|_| !last)
            .find_map(|tree| {
                let again = de::decode::<Experiment>(&tree);
                let same = matches!(&again, Err(fault)
                if fault.is_of_stand_in() || within(&fault.place(), &place));
                (!same).then_some((tree, again))
            });
        if !(fault.is_missing() && known.touches(&place)) {
            faults.push(fault);
        }
        known.add(&place);
        match mended {
            Some((better, again)) => (tree, found) = (better, again),
            None => {
                return Decoded {
                    experiment: None,
                    tree,
                    faults,
                    known,
                };
            }
        }
    }
}
