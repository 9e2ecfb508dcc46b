//! A queue of the kernel at a link.
//!
//! A network namespace is a router: what is written to its device [`IN`] is forwarded to its device
//! [`OUT`], at which the kernel's queue waits under an HTB class of the link's rate. What the queue
//! lets out is read there and transmitted by redtail's link, so delays, losses and measurements are
//! those of any other queue. The network keeps the packets; the kernel gets copies, which are told
//! apart by their identification field.
//!
//! The kernel does not say which packets it drops. Queues that drop only arriving packets are asked
//! for their counter after each packet. Of the others, a packet that comes out shows that those before
//! it were dropped, in the same flow or, if the queue keeps one order, of all flows. What is left is
//! found when the queue is empty. How many packets are gone is known at once: the kernel counts those that
//! wait. So the length of the queue is exact, and a drop is late by the time that its packet is not known.
//!
//! **The shaper must not run ahead of the link.** It sends at the link's rate while packets wait. If the link
//! began each packet when redtail has read it, each delay of redtail would put the link behind the shaper
//! until the queue is empty, and packets would wait behind the queue, where it does not see them: 64
//! downloads at 10 Mbit/s had 8 of them. So an idle link begins a packet up to `READ_LATE` before redtail
//! reads it, and earlier by the time of those that are read together with it and were let out after it.
//!
//! **A queue may hold packets back itself** (`htb`, `tbf`, `cake` with a rate). When its own shapers let a packet go
//! follows from the packets that it has let out (`shapers`). A packet does not begin before that, and
//! only idle time after it counts as lateness of the kernel (`Lateness`).

mod shapers;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redtail_core::{Bytes, Ecn, FlowId, Rate, Span, Time};
use redtail_qdisc::plugin::{
    Actions, PacketId, PacketView, PluginError, PluginParams, PluginQueue, Plugins,
};
use redtail_qdisc::shaping::{Permit, Shaping};
use redtail_qdisc::{DropReason, LinkFacts, QueueParams};
use redtail_spec::{LinkParams, Scenario};
use redtail_traffic::Direction;

use crate::adaptive_red;
use crate::kernel::HostSettings;
use crate::packet;
use crate::spaces::{self, about};
use crate::sys::clock::ticks_per_second;
use crate::sys::namespace::NetNamespace;
use crate::sys::netlink::{QueueCounters, QueueWatch};
use crate::sys::tun::Tun;
use crate::tc::{self, Place, Qdisc, Unmapped};

use shapers::{Lateness, Shapers};

/// The device at which packets enter the router.
pub const IN: &str = "in";

/// The device with the queue.
pub const OUT: &str = "out";

/// The class of the shaper, below which the queue under test is.
const CLASS: &str = "1:1";

/// The number of the queue under test in its handle, `10:`.
const HANDLE: u16 = 0x10;

/// Packets that have left the queue and wait to be read.
const OUT_QUEUE: u32 = 10_000;

/// Time between two looks for packets that were dropped without a successor in their flow.
const LOOK_INTERVAL: Span = Span::from_ms(20);

/// Time for which the shaper may send at once after it was late: as much as the kernel's timers need.
const BURST_TIME: Span = Span::from_us(150);

/// How late redtail may read a packet that the shaper has let out without a delay of the link. In virtual
/// machines it is some 1 ms after a burst of packets; the shaper itself is punctual there.
const READ_LATE: Span = Span::from_ms(2);

/// A packet that has come out of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Out {
    id: u16,
    /// Whether it carries CE.
    ce: bool,
    size: Bytes,
    /// An idle link begins it from this time on.
    from: Time,
    /// When the queue's own shapers let a packet go, this one or another one: always, if it has none.
    permit: Permit,
}

/// What has come out of a queue and is not transmitted yet.
#[derive(Debug)]
struct Released {
    packets: VecDeque<Out>,
    buffer: Vec<u8>,
    /// If the queue holds packets back itself.
    shapers: Option<Shapers>,
}

impl Released {
    /// The packets from `first` on were read together at `now`: says from when on a link of this rate may
    /// begin them. If the link reads them itself, it begins them now.
    fn read_at(&mut self, first: usize, rate: Rate, now: Time, link_reads: bool) {
        let mut late = READ_LATE;
        for (behind, out) in self.packets.range_mut(first..).rev().enumerate() {
            if behind > 0 {
                // The shaper let the next one out when this one had been transmitted.
                late += rate.tx_time(out.size);
            }
            out.from = Time::ZERO + (now - Time::ZERO).saturating_sub(late);
        }
        if let Some(shapers) = &mut self.shapers {
            for out in self.packets.range_mut(first..) {
                shapers.lets_out(out, now, link_reads);
            }
        }
    }
}

/// A router with a queue of the kernel.
#[derive(Debug)]
pub struct Router {
    /// The devices of the router live as long as this.
    _namespace: NetNamespace,
    input: Tun,
    output: Tun,
    watch: QueueWatch,
    rate: Rate,
    /// The bytes of the packet that is about to arrive.
    arriving: Mutex<Vec<u8>>,
    released: Mutex<Released>,
    /// Whether the link reads the output when it becomes free, and not the network alone.
    link_reads: AtomicBool,
    lateness: Mutex<Lateness>,
}

impl Router {
    /// Makes a router with this queue below a shaper of this rate, for packets of up to `mtu` bytes. `shaping`
    /// are the queue's own shapers. The calling thread is in its namespace afterwards.
    ///
    /// # Errors
    /// When the kernel refuses a step, or has made another queue than it was asked for.
    pub fn make(
        queue: &Qdisc,
        shaping: Option<Shaping>,
        rate: Rate,
        mtu: u64,
    ) -> io::Result<Arc<Self>> {
        let namespace =
            NetNamespace::create().map_err(|error| about(error, "a network namespace"))?;
        let [input, output] =
            [IN, OUT].map(|device| Tun::open(device).map_err(|error| about(error, "/dev/net/tun")));
        let (input, output) = (input?, output?);
        for (key, value, required) in [
            ("ipv4/ip_forward", "1", true),
            ("ipv4/conf/all/rp_filter", "0", true),
            ("ipv4/conf/in/rp_filter", "0", true),
            ("ipv6/conf/all/disable_ipv6", "1", false),
        ] {
            spaces::set(key, value, required)?;
        }
        spaces::run(
            "ip",
            &["-batch", "-"],
            &format!(
                "link set dev {IN} mtu {mtu} up\n\
                 link set dev {OUT} mtu {mtu} txqueuelen {OUT_QUEUE} up\n\
                 route add default dev {OUT}"
            ),
        )?;
        spaces::run("tc", &["-batch", "-"], &commands(queue, rate))?;
        let shown = spaces::run("tc", &["-j", "-d", "qdisc", "show", "dev", OUT], "")?;
        let shown = serde_json::from_str(&shown).map_err(|error| about(error.into(), "tc -j"))?;
        let differences = tc::differs(queue, &shown);
        if !differences.is_empty() {
            return Err(io::Error::other(format!(
                "the kernel has not made the queue \"{}\" that it was asked for: {}",
                queue.kind,
                differences.join("; ")
            )));
        }
        for each in queue.all() {
            if let Some(mean_packet) = each.adapts {
                QueueWatch::new(OUT, u32::from(each.handle) << 16)
                    .and_then(|watch| adaptive_red::start(&watch, mean_packet))
                    .map_err(|error| about(error, "the adaptation of the queue \"red\""))?;
            }
        }
        Ok(Arc::new(Self {
            _namespace: namespace,
            input,
            output,
            rate,
            watch: QueueWatch::new(OUT, u32::from(HANDLE) << 16)
                .map_err(|error| about(error, OUT))?,
            arriving: Mutex::default(),
            released: Mutex::new(Released {
                packets: VecDeque::new(),
                buffer: vec![0; 65_536],
                shapers: shaping.map(|shaping| Shapers::new(shaping, Bytes::new(mtu))),
            }),
            link_reads: AtomicBool::new(true),
            lateness: Mutex::default(),
        }))
    }

    /// The device at which what the queue lets out can be read.
    pub fn output(&self) -> &Tun {
        &self.output
    }

    /// Says whether the link reads the output when it becomes free. If that is carried out late, the link must
    /// not find what has come out since then: the network reads the output when there is something.
    pub fn let_link_read(&self, reads: bool) {
        self.link_reads.store(reads, Ordering::Relaxed);
    }

    /// Reads what has come out by `now`.
    ///
    /// # Errors
    /// When the device cannot be read.
    pub fn read_output(&self, now: Time) -> io::Result<()> {
        let released = &mut *locked(&self.released);
        let first = released.packets.len();
        while let Some(length) = self.output.read(&mut released.buffer)? {
            let bytes = &released.buffer[..length];
            if length >= 20 {
                released.packets.push_back(Out {
                    id: packet::identification(bytes),
                    ce: bytes[1] & 3 == 3,
                    size: Bytes::new(length as u64),
                    from: now,
                    permit: Permit::ALWAYS,
                });
            }
        }
        let link_reads = self.link_reads.load(Ordering::Relaxed);
        released.read_at(first, self.rate, now, link_reads);
        Ok(())
    }

    /// When an idle link may begin the next packet that has been read.
    pub fn next_begins(&self) -> Option<Time> {
        locked(&self.released).packets.front().map(|out| out.from)
    }

    /// The next packet that has come out, for a link that is idle.
    fn next_released(&self, now: Time) -> io::Result<Option<Out>> {
        let reads = self.link_reads.load(Ordering::Relaxed);
        let next = |released: &mut Released| {
            let next = *released.packets.front()?;
            (reads || next.from <= now).then_some(next)?;
            released.packets.pop_front()
        };
        let found = next(&mut locked(&self.released));
        if found.is_some() || !reads {
            return Ok(found);
        }
        self.read_output(now)?;
        Ok(next(&mut locked(&self.released)))
    }

    /// Packets that have been read and not been taken.
    fn released(&self) -> usize {
        locked(&self.released).packets.len()
    }

    /// Says which bytes the packet has that arrives next.
    pub fn arrives(&self, bytes: &[u8]) {
        let mut arriving = locked(&self.arriving);
        arriving.clear();
        arriving.extend_from_slice(bytes);
    }

    /// Says what is wrong if the kernel let packets go too late in a run of this length.
    pub fn check_shaper(&self, run: Span) -> Option<String> {
        locked(&self.lateness).wrong(run)
    }

    /// Does this with the queue's own shapers, if it has any.
    fn with_shapers(&self, act: impl FnOnce(&mut Shapers)) {
        if let Some(shapers) = &mut locked(&self.released).shapers {
            act(shapers);
        }
    }

    /// Compares the drops that redtail has counted with the kernel's; returns what is wrong.
    /// `unknown` packets have neither come out nor been counted as drops.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn check_drops(&self, counted: u64, unknown: u64) -> io::Result<Option<String>> {
        let drops = u64::from(self.watch.read()?.drops);
        Ok((drops < counted || drops > counted + unknown).then(|| {
            format!(
                "the kernel's queue has dropped {drops} packets, and {counted} to {} did not come out",
                counted + unknown
            )
        }))
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The commands that make the shaper and the queue, for `tc -batch`.
fn commands(queue: &Qdisc, rate: Rate) -> String {
    let bps = rate.as_bps();
    // Not a whole packet: that would be many small ones, which would wait behind the queue.
    let burst = (bps as f64 / 8.0 * BURST_TIME.as_secs_f64()).ceil();
    let mut commands = format!(
        "qdisc add dev {OUT} root handle 1: htb default 1\n\
         class add dev {OUT} parent 1: classid {CLASS} htb rate {bps}bit ceil {bps}bit \
         burst {burst}b cburst {burst}b quantum 1500\n"
    );
    for words in queue.commands(OUT) {
        commands.push_str(&words.join(" "));
        commands.push('\n');
    }
    commands
}

/// The kernel's form of the queue of a link, whose packets have at most `mtu` bytes.
///
/// # Errors
/// [`Unmapped`] names a key that the kernel's queue cannot have.
fn mapped(
    scenario: &Scenario,
    (link, index, direction): (&LinkParams, usize, Direction),
    mtu: u64,
) -> Result<Qdisc, Unmapped> {
    let facts = scenario.link_facts(index, direction, link, scenario.flow_table());
    let place = Place {
        parent: Some(CLASS.to_owned()),
        handle: HANDLE,
        mtu: Bytes::new(mtu),
        hz: ticks_per_second(),
    };
    tc::words(&link.queue, &facts, &place)
}

/// The largest packet that hosts of this scenario send, in bytes.
pub fn largest_packet(scenario: &Scenario) -> u64 {
    let settings = scenario.traffic.iter().map(HostSettings::of);
    settings.map(|settings| settings.mtu).max().unwrap_or(0)
}

/// The reasons why the kernel's own queues cannot stand at the links of this scenario: keys of the
/// experiment file and texts. `available` are the kinds of queues and `filters` those of filters that this kernel has, as
/// `tc` calls them.
pub fn refuse(
    scenario: &Scenario,
    available: &[String],
    filters: &[String],
) -> Vec<(String, String)> {
    let mtu = largest_packet(scenario);
    let mut refusals = Vec::new();
    let mut refuse = |key: String, reason: String| refusals.push((key, reason));
    for (key, link, index, direction) in scenario.topology.links() {
        let changes =
            "changes the rate, which the kernel's shaper does not; accepted: a constant rate";
        let adds = "adds to packets what the kernel's shaper does not count; accepted: no such key";
        for (name, given, clause) in [
            ("rate_changes", !link.rate_changes.is_empty(), changes),
            ("rate_trace", link.rate_trace.is_some(), changes),
            ("overhead", link.overhead.is_some(), adds),
        ] {
            if given {
                refuse(
                    format!("{key}.{name}"),
                    format!("{clause}, or backend live or linux-tcp"),
                );
            }
        }
        let shared = scenario.topology.hops()[index].medium.is_some();
        for (name, given) in [
            ("airtime", link.airtime.is_some()),
            ("medium", shared && direction == Direction::Forward),
        ] {
            if given {
                refuse(
                    format!("{key}.{name}"),
                    "is redtail's own transmitter, which the kernel has not; accepted: backend live or linux-tcp"
                        .to_owned(),
                );
            }
        }
        if link.policer.is_some() {
            refuse(
                format!("{key}.policer"),
                "is redtail's own, which cannot stand before a queue of the kernel; accepted: no policer, or backend live or linux-tcp"
                    .to_owned(),
            );
        }
        match mapped(scenario, (&link, index, direction), mtu) {
            Err(Unmapped {
                key: within,
                reason,
            }) => {
                refuse(
                    format!("{key}.queue.{within}"),
                    format!("{reason}, or backend live or linux-tcp"),
                );
            }
            Ok(queue) => {
                let facts = scenario.link_facts(index, direction, &link, scenario.flow_table());
                if let Some(within) = shapes_in_drr(&link.queue, &facts) {
                    refuse(
                        format!("{key}.queue.{within}"),
                        "holds packets back, and the kernel's drr then sends nothing of the other classes; accepted: a \
                         queue without a rate in a class of drr, htb in place of drr, or backend live or linux-tcp"
                            .to_owned(),
                    );
                }
                for kind in queue.filter_kinds() {
                    if !filters.iter().any(|has| has == kind) {
                        refuse(
                            format!("{key}.queue.kind"),
                            format!(
                                "= \"{}\" needs {kind} of the kernel to put packets into its classes, which this \
                                 kernel has not; accepted: a queue without classes, or backend live or linux-tcp",
                                link.queue.kind()
                            ),
                        );
                    }
                }
                for kind in queue.kinds() {
                    if !available.iter().any(|has| has == kind) {
                        refuse(
                            format!("{key}.queue.kind"),
                            format!(
                                "is {kind} of the kernel, which this kernel has not; accepted: {}, or backend live or linux-tcp",
                                available.join(", ")
                            ),
                        );
                    }
                }
            }
        }
    }
    refusals
}

/// The key of a queue in a class of `drr` that holds packets back itself. The kernel's `drr` waits for it with
/// all its classes (`drr_dequeue`), as long as its turn lasts.
fn shapes_in_drr(queue: &QueueParams, link: &LinkFacts) -> Option<String> {
    let mut found = None;
    queue.inner(link, &mut |key, inner, link| {
        let waits = queue.kind() == "drr" && Shaping::of(inner, link, kept_rate).is_some();
        let within = || Some(format!("{key}.{}", shapes_in_drr(inner, link)?));
        found = found
            .take()
            .or_else(|| waits.then(|| key.to_owned()))
            .or_else(within);
    });
    found
}

/// Makes a router with the kernel's queue for each link of `scenario`, which [`refuse`] has accepted.
/// Returns the scenario with these as its queues, what its names of queues stand for, and the routers by
/// the names of their links.
///
/// # Errors
/// When the kernel refuses a step.
pub fn routers(
    scenario: &Scenario,
    mut plugins: Plugins,
) -> io::Result<(Scenario, Plugins, BTreeMap<String, Arc<Router>>)> {
    let mtu = largest_packet(scenario);
    let mut with_routers = scenario.clone();
    let mut routers = BTreeMap::new();
    for (_, link, index, direction) in scenario.topology.links() {
        let queue = mapped(scenario, (&link, index, direction), mtu)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let facts = scenario.link_facts(index, direction, &link, scenario.flow_table());
        let shaping = Shaping::of(&link.queue, &facts, kept_rate);
        let router = Router::make(&queue, shaping, link.rate, mtu)?;
        let name = scenario.topology.link_name(index, direction);
        let class = format!("the kernel's {} at {name}", queue.kind);
        let kind = link.queue.kind();
        let drops_arriving = drops_arriving(&link.queue, &facts);
        let made = Arc::clone(&router);
        plugins = plugins.with(&class, move |_, _| {
            let queue = KernelQueue::new(Arc::clone(&made), kind, drops_arriving);
            Ok(Box::new(queue))
        });
        let hop = &mut with_routers.topology.hops_mut()[index];
        let of_link = match (direction, &mut hop.return_link) {
            (Direction::Reverse, Some(back)) => &mut back.queue,
            _ => &mut hop.queue,
        };
        *of_link = QueueParams::Plugin(PluginParams {
            class,
            limit: None,
            params: BTreeMap::new(),
            source: None,
        });
        routers.insert(name, router);
    }
    Ok((with_routers, plugins, routers))
}

/// The rate that a shaper of the kernel has for this one: it counts whole bytes in a second.
fn kept_rate(rate: Rate) -> Rate {
    Rate::from_bps((rate.as_bps() / 8).max(1) * 8)
}

/// Kinds that drop no packet but the one that arrives.
const DROP_ARRIVING: [&str; 7] = [
    "tail-drop",
    "red",
    "adaptive-red",
    "wred",
    "pie",
    "fq-pie",
    "sfb",
];

/// Kinds that only share the link among other queues, and count the drops of these as their own.
const CLASSES: [&str; 4] = ["htb", "prio", "drr", "tbf"];

/// Whether a queue drops no packet but the one that arrives.
fn drops_arriving(queue: &QueueParams, link: &LinkFacts) -> bool {
    let mut all = CLASSES.contains(&queue.kind());
    queue.inner(link, &mut |_, inner, link| {
        all &= drops_arriving(inner, link);
    });
    all || DROP_ARRIVING.contains(&queue.kind())
}

/// Kinds that send all packets in the order in which they arrived.
const ONE_ORDER: [&str; 9] = [
    "tail-drop",
    "head-drop",
    "red",
    "adaptive-red",
    "wred",
    "pie",
    "sfb",
    "codel",
    "choke",
];

/// A packet that the kernel has.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: PacketId,
    flow: FlowId,
    marked: bool,
}

/// The queue of a [`Router`], as a queue discipline.
#[derive(Debug)]
pub struct KernelQueue {
    router: Arc<Router>,
    /// Whether the queue drops arriving packets alone.
    drops_arriving: bool,
    /// Whether it sends all packets in the order of their arrival.
    one_order: bool,
    /// Whether its max_p is a metric.
    reports_max_p: bool,
    /// When to look for lost packets next.
    look_at: Time,
    /// Drops that the kernel has counted.
    drops: u32,
    /// The packets that the kernel has, by their identification there.
    held: BTreeMap<u16, Held>,
    /// Their identifications in the order of arrival, by flow if the queue changes that order.
    order: BTreeMap<FlowId, VecDeque<u16>>,
    next: u16,
    /// Packets that were dropped.
    lost: Vec<u16>,
    /// The number of packets of `held` that have been dropped, besides those in `lost`.
    missing: u64,
    /// Since when the link has waited for a packet that the kernel has.
    waiting_since: Option<Time>,
}

impl KernelQueue {
    /// The queue of a router, which is of this kind. `drops_arriving` says that it drops no packet but the
    /// one that arrives.
    pub fn new(router: Arc<Router>, kind: &str, drops_arriving: bool) -> Self {
        Self {
            router,
            drops_arriving,
            one_order: ONE_ORDER.contains(&kind),
            reports_max_p: kind == "adaptive-red",
            look_at: Time::ZERO,
            drops: 0,
            held: BTreeMap::new(),
            order: BTreeMap::new(),
            next: 0,
            lost: Vec::new(),
            missing: 0,
            waiting_since: None,
        }
    }

    fn counters(&self) -> Result<QueueCounters, PluginError> {
        self.router.watch.read().map_err(failed)
    }

    /// An identification that no packet in the kernel has.
    fn identification(&mut self) -> Result<u16, PluginError> {
        for _ in 0..=u16::MAX {
            let id = self.next;
            self.next = id.wrapping_add(1);
            if !self.held.contains_key(&id) {
                return Ok(id);
            }
        }
        Err(PluginError::new(
            "more than 65536 packets are in the kernel's queue",
        ))
    }

    /// Drops the packets that are known to be lost.
    fn drop_lost(&mut self, actions: &mut dyn Actions) -> Result<(), PluginError> {
        for id in std::mem::take(&mut self.lost) {
            if let Some(held) = self.held.remove(&id) {
                self.router.with_shapers(|shapers| {
                    shapers.gone(id);
                });
                actions.drop(held.id, DropReason::Early)?;
            }
        }
        Ok(())
    }

    /// Looks for packets that were dropped without a successor, if it is time.
    fn look(&mut self, now: Time) -> Result<(), PluginError> {
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + LOOK_INTERVAL;
        if self.held.is_empty() {
            return Ok(());
        }
        self.count(now)
    }

    /// Counts the packets that have been dropped. If nothing waits, they are known.
    fn count(&mut self, now: Time) -> Result<(), PluginError> {
        let waiting = self.counters()?.waiting;
        self.router.read_output(now).map_err(failed)?;
        let released = self.router.released();
        if waiting == 0 && released == 0 {
            self.lost.extend(self.held.keys());
            self.order.clear();
            self.waiting_since = None;
        }
        let there = waiting as usize + released + self.lost.len();
        self.missing = self.held.len().saturating_sub(there) as u64;
        self.router
            .with_shapers(|shapers| shapers.missing = self.missing as usize);
        Ok(())
    }

    /// Takes a packet that has come out, and notes those before it as lost.
    fn take(&mut self, id: u16) -> Option<Held> {
        let held = self.held.remove(&id)?;
        if let Some(order) = self.order.get_mut(&held.flow) {
            while let Some(earlier) = order.pop_front()
                && earlier != id
            {
                self.lost.push(earlier);
            }
            if order.is_empty() {
                self.order.remove(&held.flow);
            }
        }
        Some(held)
    }
}

fn failed(error: io::Error) -> PluginError {
    PluginError::new(format!("the kernel's queue: {error}"))
}

impl PluginQueue for KernelQueue {
    fn enqueue(
        &mut self,
        view: PacketView,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        self.look(now)?;
        self.drop_lost(actions)?;
        let id = self.identification()?;
        {
            let mut bytes = locked(&self.router.arriving);
            packet::set_identification(&mut bytes, id);
            // The kernel forwards and queues the packet before this call returns.
            self.router.input.write(&bytes).map_err(failed)?;
        }
        if self.drops_arriving {
            let drops = self.counters()?.drops;
            if drops != self.drops {
                self.drops = drops;
                return actions.drop(view.id, DropReason::Early);
            }
        }
        let marked = view.ecn == Ecn::Ce;
        let flow = if self.one_order { FlowId(0) } else { view.flow };
        self.held.insert(
            id,
            Held {
                id: view.id,
                flow,
                marked,
            },
        );
        self.order.entry(flow).or_default().push_back(id);
        self.router
            .with_shapers(|shapers| shapers.enters(id, (view.dscp, &view.facts), now));
        if !self.drops_arriving {
            self.count(now)?;
        }
        Ok(())
    }

    fn dequeue(
        &mut self,
        now: Time,
        actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        self.look(now)?;
        let mut next = None;
        while next.is_none()
            && let Some(out) = self.router.next_released(now).map_err(failed)?
        {
            next = self.take(out.id).map(|held| (held, out));
        }
        self.drop_lost(actions)?;
        if !self.drops_arriving {
            self.count(now)?;
        }
        let Some((held, Out { ce, permit, .. })) = next else {
            if !self.held.is_empty() {
                self.waiting_since.get_or_insert(now);
            }
            return Ok(None);
        };
        let since = self.waiting_since.take();
        locked(&self.router.lateness).begins(since, permit, now);
        if ce && !held.marked {
            actions.mark(held.id)?;
        }
        Ok(Some(held.id))
    }

    fn next_wakeup(&self, now: Time) -> Result<Option<Time>, PluginError> {
        // A queue that holds packets back has to name a later time.
        let later = self.look_at.max(now + Span::from_ms(1));
        Ok((!self.held.is_empty()).then_some(later))
    }

    fn on_wakeup(&mut self, now: Time) -> Result<(), PluginError> {
        self.look(now)
    }

    fn report(&self, _now: Time, tell: &mut dyn FnMut(&str, f64)) -> Result<(), PluginError> {
        if self.reports_max_p {
            let of_2_to_32 = self.router.watch.red().map_err(failed)?.max_p;
            tell("max_p", f64::from(of_2_to_32) / 2f64.powi(32));
        }
        Ok(())
    }

    fn missing(&self) -> u64 {
        self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn out(id: u16, size: u64) -> Out {
        Out {
            id,
            ce: false,
            size: Bytes::new(size),
            from: Time::ZERO,
            permit: Permit::ALWAYS,
        }
    }

    #[test]
    fn packets_read_late_are_begun_when_the_shaper_let_them_out() {
        // 1500 B take 1200 us at 10 Mbit/s. The link must not begin the first of four at 100 ms, 3.6 ms
        // after the shaper let it out: it would be behind the shaper as long as packets wait.
        let sizes = [1500, 750, 1500, 1500];
        let mut released = Released {
            packets: (0..).zip(sizes).map(|(id, size)| out(id, size)).collect(),
            buffer: Vec::new(),
            shapers: None,
        };
        released.read_at(0, Rate::from_bps(10_000_000), at_us(100_000), false);
        let from: Vec<Time> = released.packets.iter().map(|out| out.from).collect();
        let last = at_us(100_000 - 2000);
        let before = [3000, 1800, 1200, 0].map(|us| last - Span::from_us(us));
        assert_eq!(from, before);

        // What was read earlier keeps its time.
        released.packets.push_back(out(4, 1500));
        released.read_at(4, Rate::from_bps(10_000_000), at_us(101_000), false);
        assert_eq!(released.packets[3].from, last);
        assert_eq!(released.packets[4].from, at_us(99_000));
    }

    #[test]
    fn classes_drop_arrivals_alone_if_their_queues_do() {
        let link = LinkFacts::of_rate(Rate::from_bps(10_000_000));
        let drops_arriving = |inner: &str| {
            let queue = serde_json::json!({"htb": {"default": "a", "class": [
                {"name": "a", "rate": "5 Mbit/s", "queue": {"tail-drop": {"limit": "9 packets"}}},
                {"name": "b", "rate": "5 Mbit/s", "queue": {inner: {}}},
            ]}});
            drops_arriving(
                &redtail_spec::queue_from_json(queue).expect("it is a queue"),
                &link,
            )
        };
        assert!(drops_arriving("sfb"));
        assert!(!drops_arriving("codel"));
    }
}
