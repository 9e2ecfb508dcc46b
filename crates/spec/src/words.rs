//! Words of other programs for what the experiment file calls by another name.
//!
//! | program | source of its words |
//! |---|---|
//! | ns-2 | The ns Manual: "Queue Management and Packet Scheduling", "TCP Agents", "Applications and Transport Agent API"; names of classes in OTcl |
//! | ns-3 | its class names (`TypeId`) in the API documentation: `QueueDisc`, `TcpCongestionOps`, `Application` |
//! | tc | the manual page tc(8) and those of its queues, tc-NAME(8) |
//! | Linux | ip-sysctl.rst (`tcp_congestion_control`) and the names of its modules |
//! | iperf3, netperf | their manual pages |
//! | FreeBSD, Cisco IOS | ipfw(8); the command reference of quality of service |

/// A word of another program.
struct Word {
    /// Without the prefixes and endings that [`bare`] removes, in small letters and digits alone.
    theirs: &'static str,
    /// A kind, a preset or a key of the experiment file.
    ours: &'static str,
    program: &'static str,
}

macro_rules! words {
    ($($program:literal: $($theirs:literal => $ours:literal),+;)+) => {
        &[$($(Word { theirs: $theirs, ours: $ours, program: $program }),+),+]
    };
}

/// All words. One word may stand for several things, of which a place accepts one.
const WORDS: &[Word] = words! {
    "ns-2": "droptail" => "tail-drop", "vq" => "avq", "tcp" => "ns2-tahoe", "tcpreno" => "ns2-reno",
        "tcpnewreno" => "ns2-newreno", "tcpsack1" => "ns2-sack", "tcpsack" => "ns2-sack",
        "sack1" => "ns2-sack", "tcpvegas" => "vegas", "tcplinux" => "linux", "ftp" => "bulk",
        "pareto" => "on-off", "exponential" => "on-off", "thresh" => "min_th", "maxthresh" => "max_th",
        "qweight" => "w_q";
    "ns-3": "fifo" => "tail-drop", "droptail" => "tail-drop", "tcplinuxreno" => "sack", "tcpnewreno" => "newreno",
        "tcpcubic" => "cubic", "tcpbbr" => "bbr", "tcpdctcp" => "dctcp", "tcpvegas" => "vegas",
        "tcpledbat" => "ledbat", "tcpwestwood" => "westwood", "tcpwestwoodplus" => "westwood",
        "tcpbic" => "bic", "tcphtcp" => "htcp", "tcphybla" => "hybla", "tcpillinois" => "illinois",
        "tcphighspeed" => "highspeed", "tcpscalable" => "scalable", "tcpveno" => "veno",
        "tcpyeah" => "yeah", "bulksend" => "bulk", "onoff" => "on-off", "udpclient" => "cbr",
        "threegpphttpclient" => "web", "datarate" => "rate", "maxsize" => "limit",
        "initialcwnd" => "initial_window", "initialslowstartthreshold" => "initial_ssthresh",
        "segmentsize" => "mss", "qw" => "w_q";
    "tc": "pfifo" => "tail-drop", "bfifo" => "tail-drop", "pfifoheaddrop" => "head-drop",
        "pfifofast" => "pfifo-fast", "fqcodel" => "fq-codel", "fqpie" => "fq-pie", "gred" => "wred",
        "min" => "min_th", "max" => "max_th", "probability" => "max_p",
        "avpkt" => "mean_packet", "tupdate" => "update";
    "Linux": "tcpcubic" => "cubic", "tcpbbr" => "bbr", "bbr2" => "bbr3", "tcpdctcp" => "dctcp",
        "tcpreno" => "sack", "tcphtcp" => "htcp", "initcwnd" => "initial_window", "ssthresh" => "initial_ssthresh",
        "rtomin" => "min_rto";
    "FreeBSD": "droptail" => "tail-drop", "fqcodel" => "fq-codel", "fqpie" => "fq-pie", "bw" => "rate";
    "Cisco IOS": "fairqueue" => "wfq", "randomdetect" => "wred", "priorityqueue" => "prio",
        "queuelimit" => "limit", "bandwidth" => "rate";
    "iperf3": "udp" => "cbr", "tcp" => "bulk", "parallel" => "flows", "bitrate" => "rate",
        "length" => "packet", "congestion" => "tcp", "time" => "duration";
    "netperf": "tcpstream" => "bulk", "tcpmaerts" => "bulk", "udpstream" => "cbr", "tcprr" => "transactions";
};

/// What stands before and behind the names of classes. The order matters: a longer prefix first.
const PREFIXES: [&str; 5] = [
    "ns3::",
    "Agent/",
    "Queue/",
    "Application/Traffic/",
    "Application/",
];
const ENDINGS: [&str; 3] = ["QueueDisc", "Application", "Queue"];

/// A word without what its program adds to all names, in small letters and digits.
fn bare(word: &str) -> String {
    let word = word.trim();
    let word = PREFIXES
        .iter()
        .find_map(|prefix| word.strip_prefix(prefix))
        .unwrap_or(word);
    let rest = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    let word = rest.filter(|rest| !rest.is_empty()).unwrap_or(word);
    let letters = word.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// The program whose words have this form, if it can be told.
fn form(word: &str) -> Option<&'static str> {
    let camel = |prefix| {
        let rest = word.strip_prefix(prefix);
        rest.is_some_and(|rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    match word {
        _ if word.starts_with("ns3::") || word.ends_with("QueueDisc") || camel("Tcp") => {
            Some("ns-3")
        }
        _ if word.contains('/') => Some("ns-2"),
        _ if word.starts_with("tcp_") => Some("Linux"),
        _ => None,
    }
}

/// The entry of `known` that a word of another program stands for, and the program.
pub(crate) fn meaning<'a>(word: &str, known: &[&'a str]) -> Option<(&'a str, &'static str)> {
    let (bare, form) = (bare(word), form(word.trim()));
    let entries = WORDS.iter().filter(|each| each.theirs == bare);
    let mut found: Vec<_> = entries
        .filter_map(|each| {
            let ours = known.iter().find(|ours| **ours == each.ours)?;
            Some((*ours, each.program))
        })
        .collect();
    found.sort_by_key(|(_, program)| form.is_some_and(|form| form != *program));
    // A class of the same name: `RedQueueDisc`, `Queue/RED`, `ns3::CoDelQueueDisc`.
    let same = || {
        let ours = known
            .iter()
            .find(|ours| ours.replace(['-', '_'], "") == bare)?;
        Some((*ours, form?))
    };
    let first = found.first().copied();
    match form {
        Some(form) if first.is_none_or(|(_, program)| program != form) => same().or(first),
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redtail_qdisc::QueueParams;
    use redtail_traffic::TrafficParams;
    use redtail_transport::Preset;

    fn presets() -> Vec<String> {
        let name = |preset: &Preset| serde_json::to_value(preset).unwrap();
        let names = Preset::ALL.iter().map(name);
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn words_are_written_as_they_are_looked_up_and_lead_to_words_of_ours() {
        let presets = presets();
        let schema = crate::schema().to_string();
        for Word { theirs, ours, .. } in WORDS {
            assert_eq!(bare(theirs), *theirs);
            let known = QueueParams::KINDS.contains(ours)
                || TrafficParams::KINDS.contains(ours)
                || presets.iter().any(|name| name == ours)
                || schema.contains(&format!("\"{ours}\""));
            assert!(known, "{ours} is nothing of ours");
        }
    }

    #[test]
    fn classes_and_modules_of_other_programs_are_found() {
        let queue = |word| meaning(word, QueueParams::KINDS);
        assert_eq!(queue("DropTail"), Some(("tail-drop", "ns-2")));
        assert_eq!(queue("ns3::FqCoDelQueueDisc"), Some(("fq-codel", "ns-3")));
        assert_eq!(queue("ns3::RedQueueDisc"), Some(("red", "ns-3")));
        assert_eq!(queue("Queue/RED"), Some(("red", "ns-2")));
        assert_eq!(queue("pfifo"), Some(("tail-drop", "tc")));
        assert_eq!(queue("fq_codel"), Some(("fq-codel", "tc")));
        assert_eq!(queue("TcpCubic"), None);
        let presets = presets();
        let presets: Vec<_> = presets.iter().map(String::as_str).collect();
        let tcp = |word| meaning(word, &presets);
        assert_eq!(tcp("Agent/TCP/Sack1"), Some(("ns2-sack", "ns-2")));
        assert_eq!(tcp("Agent/TCP/Newreno"), Some(("ns2-newreno", "ns-2")));
        assert_eq!(tcp("ns3::TcpCubic"), Some(("cubic", "ns-3")));
        assert_eq!(tcp("TcpNewReno"), Some(("newreno", "ns-3")));
        assert_eq!(tcp("tcp_bbr"), Some(("bbr", "Linux")));
    }
}
