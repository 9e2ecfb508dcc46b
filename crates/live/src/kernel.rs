//! What this kernel's TCP can be told, and which experiments it can run.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use redtail_core::{Bytes, Rate};
use redtail_spec::{EventKind, Scenario};
use redtail_traffic::TrafficParams;
use redtail_transport::cc::Growth;
use redtail_transport::cc::slow_start::SlowStartKind;
use redtail_transport::choices::EcnReduction;
use redtail_transport::tcp::recovery::RecoveryKind;
use redtail_transport::{Preset, ResolvedTcpParams, TcpParams};
use serde_json::Value as Json;

use crate::addresses;
use crate::hosts::log::is_told;

/// Settings of the hosts on one side of a group.
#[derive(Clone, Debug, Default)]
pub struct HostSettings {
    /// Largest packet in bytes, IP header included.
    pub mtu: u64,
    /// Keys below `/proc/sys/net` with their values. A kernel that lacks one has it left out only if
    /// the flag says so.
    pub sysctls: Vec<Sysctl>,
    /// Attributes of the default route, as `ip route` reads them.
    pub route: String,
}

/// A setting of a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// The key of the setting below `/proc/sys/net`.
    pub key: &'static str,
    /// The value of the setting.
    pub value: String,
    /// Whether every kernel has it; others are left as they are where they do not exist.
    pub required: bool,
}

/// The largest send buffer where a file gives none, bytes: it limits no window of these links.
const WMEM: u64 = 64 << 20;

/// Bytes of IPv4 and TCP headers without options.
const PLAIN_HEADER: u64 = 40;

/// Bytes of the timestamps option on every segment (RFC 7323, appendix A).
const TIMESTAMPS: u64 = 12;

/// Largest packet of hosts without TCP.
const MTU: u64 = 1500;

/// The highest rate of a link. Real packets at more than this need more than one core of present
/// machines; the run itself tells whether the machine kept up.
const MAX_RATE: Rate = Rate::from_bps(2_000_000_000);

/// Segment sizes that Linux and its TUN devices handle (`TCP_MIN_MSS` is 88, net/tcp.h).
const MSS: std::ops::RangeInclusive<u64> = 88..=16_000;

/// The keys of a TCP table that a file may set besides `preset`; the rest of a preset is as this
/// kernel has it. The network writes `ecn_codepoint` into packets. `slow_start = "standard"` is what kernels do with every congestion control but CUBIC,
/// which has HyStart (net/ipv4/tcp_cubic.c); `growth` may be another law, with its own constants.
const SETTABLE: [&str; 18] = [
    "mss",
    "header",
    "kernel_control",
    "initial_window",
    "initial_ssthresh",
    "dup_thresh",
    "delayed_ack",
    "timestamps",
    "receive_window",
    "receive_autotuning",
    "send_buffer",
    "min_rto",
    "frto",
    "dsack",
    "ecn",
    "ecn_codepoint",
    "ecn_fallback",
    "idle_restart",
];

/// The keys in whose place `kernel_control` stands.
const CHOSEN_BY_CONTROL: [&str; 2] = ["growth", "slow_start"];

/// The name in the kernel (`net.ipv4.tcp_congestion_control`) of what the parameters describe;
/// `None` if no kernel has it.
pub fn congestion_control(params: &TcpParams) -> Option<&str> {
    if params.ecn_reduction == EcnReduction::Dctcp && params.kernel_control.is_none() {
        return Some("dctcp");
    }
    let recovers = matches!(
        params.recovery,
        RecoveryKind::Newreno | RecoveryKind::Sack | RecoveryKind::Linux
    );
    if !recovers || !params.handshake {
        return None;
    }
    if params.kernel_control.is_some() {
        return params.kernel_control.as_deref();
    }
    Some(match params.growth.kind() {
        Growth::Reno | Growth::LinuxReno => "reno",
        Growth::Cubic | Growth::LinuxCubic => "cubic",
        Growth::Vegas => "vegas",
        Growth::Westwood => "westwood",
        Growth::Bic => "bic",
        Growth::Htcp => "htcp",
        Growth::Hybla => "hybla",
        Growth::Illinois => "illinois",
        Growth::Highspeed => "highspeed",
        Growth::Scalable => "scalable",
        Growth::Veno => "veno",
        Growth::Yeah => "yeah",
        Growth::Bbr => "bbr",
        Growth::Prague => "prague",
        _ => return None,
    })
}

/// The congestion controls that a process without privileges may use on this host.
///
/// # Errors
/// When the kernel does not tell.
pub fn available() -> io::Result<BTreeSet<String>> {
    let folder = "/proc/sys/net/ipv4";
    let names = fs::read_to_string(format!("{folder}/tcp_available_congestion_control"))?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// Makes sure that a connection is controlled by what the file asks for. Without ECN a controller that needs it may
/// go on as Reno under a name of its own (`dctcp-reno`, net/ipv4/tcp_dctcp.c), and a SYN that was sent again asks
/// for none; `repeated` says that this may be so.
///
/// # Errors
/// When another one is at work; the message has both names.
pub fn require_control(wanted: &str, found: &str, repeated: bool) -> io::Result<()> {
    let falls_back = found
        .strip_suffix("-reno")
        .is_some_and(|own| own == wanted && repeated);
    if found == wanted || falls_back {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "kernel_control = \"{wanted}\": the connection is controlled by {found}"
    )))
}

/// Why a scenario cannot be run: a key of the experiment file, and the reason.
pub type Refusal = (String, String);

/// The reasons why this kernel cannot run a scenario; `available` has its congestion controls.
pub fn refuse(scenario: &Scenario, available: &BTreeSet<String>) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |key: String, reason: String| refusals.push((key, reason));
    for (i, hop) in scenario.topology.hops().iter().enumerate() {
        let place = scenario.topology.hop_name(i);
        let back = hop.return_link.as_ref().map(|link| (".return", link.rate));
        for (part, rate) in [("", hop.rate)].into_iter().chain(back) {
            if rate > MAX_RATE {
                refuse(
                    format!("{place}{part}.rate"),
                    format!("is {rate}; accepted: up to {MAX_RATE}, or backend sim"),
                );
            }
        }
    }
    if let Some(events) = &scenario.events
        && !events.kinds.iter().any(|&kind| is_told(kind))
    {
        let told = EventKind::ALL.iter().filter(|&&kind| is_told(kind));
        let told: Vec<_> = told.map(|kind| kind.meaning().name).collect();
        refuse(
            "events.kinds".to_owned(),
            format!(
                "has only events of which a kernel does not tell; accepted: {}, or backend sim",
                told.join(", ")
            ),
        );
    }
    if !scenario.record.is_empty() {
        refuse(
            "record".to_owned(),
            "is given; accepted: no record, or backend sim".to_owned(),
        );
    }
    if scenario.traffic.len() > addresses::MAX_GROUPS {
        let count = scenario.traffic.len();
        refuse(
            "traffic".to_owned(),
            format!(
                "has {count} groups; accepted: up to {}",
                addresses::MAX_GROUPS
            ),
        );
    }
    for group in &scenario.traffic {
        let access = group.access();
        let (name, hosts) = (access.name, access.host_count());
        if hosts > addresses::MAX_HOSTS {
            refuse(
                format!("traffic.{name}.hosts"),
                format!("is {hosts}; accepted: up to {}", addresses::MAX_HOSTS),
            );
        }
        if let Some(owner) = access.hosts_of {
            refuse(
                format!("traffic.{name}.hosts"),
                format!(
                    "is {owner:?}, and each group has addresses of its own here; accepted: a number, or backend sim"
                ),
            );
        }
        let per_host = (access.flows as usize).div_ceil(hosts.max(1));
        let opens = group.has_users() || group.programs().is_some();
        if !opens && per_host > addresses::MAX_FLOWS_PER_HOST {
            refuse(
                format!("traffic.{name}.flows"),
                format!(
                    "makes {per_host} flows on a host; accepted: up to {}",
                    addresses::MAX_FLOWS_PER_HOST
                ),
            );
        }
        if let TrafficParams::Call(call) = group
            && call.ecn
        {
            refuse(
                format!("traffic.{name}.ecn"),
                "is true, and sockets of calls do not see marks yet; accepted: false, or backend sim"
                    .to_owned(),
            );
        }
        if let TrafficParams::Endpoint(_) = group {
            refuse(
                format!("traffic.{name}.kind"),
                "is \"endpoint\", and only the simulator runs endpoints of a program's own; accepted: another kind"
                    .to_owned(),
            );
        }
        if group.access().trains {
            refuse(
                format!("traffic.{name}.trains"),
                "is true, and senders here have their own segmentation; accepted: false, or backend sim".to_owned(),
            );
        }
        if group.drawn_sizes().is_some() {
            refuse(
                format!("traffic.{name}.packet"),
                "is a law, and only the simulator draws the size of each packet; accepted: a constant, or backend sim"
                    .to_owned(),
            );
        }
        if let Some(tcp) = group.tcp() {
            refuse_tcp(name, tcp, available, &mut refuse);
        }
    }
    refusals
}

fn refuse_tcp(
    group: &str,
    tcp: &ResolvedTcpParams,
    available: &BTreeSet<String>,
    refuse: &mut impl FnMut(String, String),
) {
    let (preset, params) = (tcp.given.preset, &tcp.params);
    let key = |key: &str| format!("traffic.{group}.tcp.{key}");
    if let Some(class) = &params.class {
        let clause = format!(
            "is {class:?}, a controller that no kernel has; accepted: no such key, or backend sim"
        );
        return refuse(key("class"), clause);
    }
    let name = serde_json::to_value(preset).expect("a preset has a name");
    let name = name.as_str().expect("a preset's name is a string");
    let has = || {
        available
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let control = congestion_control(params);
    match control {
        Some(control) if params.kernel_control.is_some() && !available.contains(control) => refuse(
            key("kernel_control"),
            format!(
                "\"{control}\" is no congestion control that this kernel has loaded; accepted: {}; root loads modules \
                 (`modprobe tcp_{control}`), and `redtail kernel add NAME --module FILE` puts one of yours into a \
                 kernel for backend linux",
                has()
            ),
        ),
        None => refuse(
            key("preset"),
            format!(
                "\"{name}\": no Linux kernel behaves so; accepted: a preset whose congestion control this kernel has ({}), or backend sim",
                has()
            ),
        ),
        Some(control) if !available.contains(control) => refuse(
            key("preset"),
            format!(
                "\"{name}\" needs congestion control {control}, which this kernel has not loaded; accepted: {}, `modprobe tcp_{control}` as root, or backend sim",
                has()
            ),
        ),
        Some(_) => {}
    }
    if !MSS.contains(&params.mss.as_u64()) {
        refuse(
            key("mss"),
            format!(
                "is {}; accepted: {} B to {} B",
                params.mss,
                MSS.start(),
                MSS.end()
            ),
        );
    }
    let json = |params: &TcpParams| serde_json::to_value(params).expect("parameters have a form");
    let (given, usual) = (json(params), json(&preset.params()));
    let (Json::Object(given), Json::Object(usual)) = (given, usual) else {
        return;
    };
    for (name, value) in given {
        let standard = params.slow_start == SlowStartKind::Standard.into();
        let of_preset = usual.get(&name);
        let is_usual = of_preset == Some(&value);
        if !is_usual
            && params.kernel_control.is_some()
            && CHOSEN_BY_CONTROL.contains(&name.as_str())
        {
            refuse(
                key(&name),
                format!(
                    "is {value} beside kernel_control, which is in its place; accepted: one of the two"
                ),
            );
            continue;
        }
        let has_it = is_usual
            || SETTABLE.contains(&name.as_str())
            || name == "growth" && params.growth == params.growth.kind().into()
            || name == "slow_start" && standard && control != Some("cubic");
        if !has_it {
            let value = match (value.get("kind"), of_preset.and_then(|own| own.get("kind"))) {
                (Some(law), usual) if name == "growth" || Some(law) == usual => {
                    format!("{law} with other constants")
                }
                (Some(law), _) => law.to_string(),
                (None, _) => value.to_string(),
            };
            refuse(
                key(&name),
                format!(
                    "is {value}, which cannot be set in a kernel; accepted: the preset's value, or backend sim"
                ),
            );
        }
    }
}

impl HostSettings {
    /// Settings of the hosts of a group.
    pub fn of(group: &TrafficParams) -> Self {
        match (group, group.tcp()) {
            (_, Some(tcp)) => Self::tcp(&tcp.params),
            // What most Linux hosts have; programs may set more on their sockets.
            (TrafficParams::Program(_), None) => Self {
                mtu: MTU,
                ..Self::tcp(&Preset::Linux.params())
            },
            (_, None) => Self::udp(),
        }
    }

    /// Settings of hosts that use UDP.
    pub fn udp() -> Self {
        Self {
            mtu: MTU,
            sysctls: common(),
            route: String::new(),
        }
    }

    /// Settings of hosts that use TCP with these parameters.
    pub fn tcp(params: &TcpParams) -> Self {
        let on = |on: bool| u8::from(on).to_string();
        let header = PLAIN_HEADER + if params.timestamps { TIMESTAMPS } else { 0 };
        // Linux takes half of the buffer for the window (tcp_adv_win_scale = 1, ip-sysctl.txt).
        let buffer = params.receive_window.as_u64().saturating_mul(2);
        let buffer = buffer.clamp(4096, i32::MAX as u64 / 2);
        let linux = params.recovery == RecoveryKind::Linux;
        let mut sysctls = common();
        let mut set = |key, value: String| {
            sysctls.push(Sysctl {
                key,
                value,
                required: true,
            })
        };
        set("ipv4/tcp_ecn", on(params.ecn));
        set("ipv4/tcp_ecn_fallback", on(params.ecn_fallback));
        set("ipv4/tcp_sack", on(params.recovery.uses_sack()));
        set("ipv4/tcp_dsack", on(params.dsack));
        set("ipv4/tcp_timestamps", on(params.timestamps));
        set(
            "ipv4/tcp_frto",
            if params.frto { "2" } else { "0" }.to_owned(),
        );
        // RACK and tail loss probes belong to Linux's own recovery.
        set("ipv4/tcp_recovery", on(linux));
        set(
            "ipv4/tcp_early_retrans",
            if linux { "3" } else { "0" }.to_owned(),
        );
        set("ipv4/tcp_reordering", params.dup_thresh.to_string());
        set("ipv4/tcp_slow_start_after_idle", on(params.idle_restart));
        set("ipv4/tcp_no_metrics_save", "1".to_owned());
        set(
            "ipv4/tcp_rmem",
            format!("4096 {} {buffer}", buffer.min(131_072)),
        );
        let most = params.send_buffer.map_or(WMEM, Bytes::as_u64);
        set("ipv4/tcp_wmem", format!("4096 {} {most}", most.min(16_384)));
        let ms = (params.min_rto.as_ps() / 1_000_000_000).max(1);
        let mut route = format!("initcwnd {} rto_min {ms}ms", params.initial_window);
        if let Some(segments) = params.initial_ssthresh {
            route += &format!(" ssthresh {segments}");
        }
        if !params.delayed_ack {
            route += " quickack 1";
        }
        Self {
            mtu: params.mss.as_u64() + header,
            sysctls,
            route,
        }
    }
}

/// What every namespace sets: ports for users, and no IPv6, whose router solicitations would cross
/// the bottleneck.
fn common() -> Vec<Sysctl> {
    vec![
        Sysctl {
            key: "ipv4/ip_local_port_range",
            value: "1024 65535".to_owned(),
            required: true,
        },
        Sysctl {
            key: "ipv6/conf/all/disable_ipv6",
            value: "1".to_owned(),
            required: false,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_with_another_control_is_an_error_with_both_names() {
        assert!(require_control("dctcp", "dctcp", false).is_ok());
        for (found, repeated) in [("cubic", true), ("dctcp-reno", false), ("cubic-reno", true)] {
            let error = require_control("dctcp", found, repeated).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("kernel_control = \"dctcp\": the connection is controlled by {found}")
            );
        }
        // Its own way without ECN, which a repeated SYN does not ask for.
        assert!(require_control("dctcp", "dctcp-reno", true).is_ok());
    }
}
