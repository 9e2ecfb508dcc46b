//! WRED as the kernel's `gred`: the set-up of its virtual queues, one for each profile.

use redtail_qdisc::queues::wred::WredParams;
use serde_json::{Map, Value as Json};

use super::convert::{Context, refused};
use super::shown::Expect;
use super::table::{row_of, rows};
use super::{Change, Qdisc, Setting, Unmapped};

/// Most profiles: `MAX_DPs` of sch_gred.c, less number 0, which stands for packets without a number.
const MOST: usize = 15;

/// Adds the set-up, a change for each profile, and the filters that choose among profiles.
pub(super) fn complete(
    qdisc: &mut Qdisc,
    wred: &WredParams,
    context: &Context<'_>,
    alone: bool,
) -> Result<(), Unmapped> {
    let profiles = &wred.profiles;
    if profiles.len() > MOST {
        let count = Json::from(format!("{} profiles", profiles.len()));
        return Err(refused("profiles", Some(&count), format!("up to {MOST}")));
    }
    let has_dscps = profiles.iter().any(|profile| !profile.dscp.is_empty());
    if has_dscps && !alone {
        return Err(Unmapped::new(
            "profiles",
            "name DSCPs in a class: the filters that choose among profiles hold for the whole device; accepted: \
             one profile without dscp, or wred where no other queue stands beside it",
        ));
    }
    let others = profiles.iter().position(|profile| profile.dscp.is_empty());
    let others = others.expect("the parameters have been checked") + 1;
    let shared = profiles.len() > 1;
    let mut words = ["setup", "vqs"].map(str::to_owned).to_vec();
    words.push((profiles.len() + 1).to_string());
    words.extend(["default".to_owned(), others.to_string()]);
    if shared {
        words.push("grio".to_owned());
    }
    let set_up = Setting {
        key: "profiles".to_owned(),
        words,
        kept: None,
        expect: vec![
            ("dp_cnt", Expect::exactly(profiles.len() as f64 + 1.0)),
            ("dp_default", Expect::exactly(others as f64)),
            ("grio", Expect::Flag(shared)),
        ],
    };
    qdisc.settings.insert(0, set_up);
    for (index, profile) in profiles.iter().enumerate() {
        let own = serde_json::to_value(profile).expect("parameters have a form");
        let mut settings = vec![numbered(index + 1)];
        settings.extend(profile_settings(index, &own, context)?);
        if shared {
            settings.push(Setting {
                key: String::new(),
                words: ["prio", "1"].map(str::to_owned).to_vec(),
                kept: None,
                expect: vec![("prio", Expect::exactly(1.0))],
            });
        }
        qdisc.changes.push(Change {
            number: index + 1,
            settings,
        });
        for dscp in &profile.dscp {
            let tos = format!("0x{:02x}/0xfc", dscp.get() << 2);
            let class = format!("{}{:x}", qdisc.name(), index + 1);
            let pref = (index + 1).to_string();
            let words = [
                "egress", "protocol", "ip", "pref", &pref, "flower", "ip_tos", &tos, "classid",
                &class,
            ];
            qdisc.filters.push(words.map(str::to_owned).to_vec());
        }
    }
    qdisc.at_exit = has_dscps;
    Ok(())
}

fn numbered(number: usize) -> Setting {
    Setting {
        key: String::new(),
        words: vec!["DP".to_owned(), number.to_string()],
        kept: None,
        expect: Vec::new(),
    }
}

/// A profile is RED: its keys become options as those of `red` do.
fn profile_settings(
    index: usize,
    profile: &Json,
    context: &Context<'_>,
) -> Result<Vec<Setting>, Unmapped> {
    let mut keys: Map<String, Json> = profile.as_object().cloned().unwrap_or_default();
    for key in ["limit", "w_q", "mean_packet", "ecn", "above_max_th"] {
        keys.insert(key.to_owned(), context.keys[key].clone());
    }
    let inner = Context {
        keys: &keys,
        ..*context
    };
    let wanted = rows("red").filter(|row| row.key.is_empty() || keys.contains_key(row.key));
    let of_profile = |error: Unmapped| match row_of("wred", &format!("profiles.{}", error.key)) {
        Some(_) => error.within(&format!("profiles (entry {})", index + 1)),
        None => error,
    };
    wanted
        .map(|row| inner.setting(row, keys.get(row.key)).map_err(of_profile))
        .collect()
}
