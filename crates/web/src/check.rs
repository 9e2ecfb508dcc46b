//! Experiments as the page has them: texts, checked as everywhere, and what the page cannot run of them.

use std::collections::BTreeMap;

use redtail_core::ParamError;
use redtail_core::plugin::{Identity, Role};
use redtail_spec::{Plan, PlanOptions, SpecError, line_of, no_endpoints};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::limits::{MOST_CASES, MOST_FILES, MOST_TEXT};

/// An experiment: its text, and those of the files that it names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The file, TOML.
    text: String,
    /// What messages call the file.
    #[serde(default)]
    file: Option<String>,
    /// The texts of traces by the names that the file has for them.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What is wrong and what is accepted.
    pub message: String,
    /// The line of the file.
    pub line: Option<u32>,
    /// The dotted key.
    pub key: Option<String>,
}

impl Fault {
    /// A fault of no place of the file.
    pub fn new(message: String) -> Self {
        Self {
            message,
            line: None,
            key: None,
        }
    }

    fn json(&self) -> Value {
        let mut found = json!({ "message": self.message });
        if let Some(line) = self.line {
            found["line"] = line.into();
        }
        if let Some(key) = &self.key {
            found["key"] = key.as_str().into();
        }
        found
    }
}

/// Why an experiment cannot be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// All faults; at least one.
    pub faults: Vec<Fault>,
    /// The whole message, as `redtail check` prints it.
    pub text: String,
}

impl Refusal {
    /// The answer that says so.
    pub fn json(&self) -> Value {
        let errors: Vec<_> = self.faults.iter().map(Fault::json).collect();
        json!({ "ok": false, "errors": errors, "text": self.text })
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self {
            text: fault.message.clone(),
            faults: vec![fault],
        }
    }
}

impl From<SpecError> for Refusal {
    fn from(error: SpecError) -> Self {
        let fault = |problem: &redtail_spec::Problem| Fault {
            message: problem.message.clone(),
            line: problem.origin.line(),
            key: problem.key.clone(),
        };
        Self {
            text: error.to_string(),
            faults: error.problems().iter().map(fault).collect(),
        }
    }
}

/// Why a plug-in is refused.
fn no_plugin(role: Role) -> ParamError {
    ParamError::new(
        "class",
        format!("names a {role} of your own, whose code this page does not run"),
        format!("a {role} of redtail; `redtail run` runs the file as it is"),
    )
}

impl Experiment {
    /// Checks and expands the experiment.
    ///
    /// # Errors
    /// All that [`Plan::from_text`] refuses, and all that the page cannot run.
    pub fn plan(&self) -> Result<Plan, Refusal> {
        if self.text.len() > MOST_TEXT {
            let most = MOST_TEXT >> 10;
            let message =
                format!("the file is too long for this page; accepted: at most {most} KiB");
            return Err(Fault::new(message).into());
        }
        if self.files.values().map(String::len).sum::<usize>() > MOST_FILES {
            let most = MOST_FILES >> 20;
            let message = format!(
                "the files that the experiment names are too long for this page; accepted: at most {most} MiB together"
            );
            return Err(Fault::new(message).into());
        }
        let mut read = |name: &str| {
            self.files.get(name).cloned().ok_or_else(|| {
                "is no file of this page; accepted: a file that was dropped on the page with the experiment"
                    .to_owned()
            })
        };
        let mut visit = |role: Role, _: &mut Identity| {
            Err(match role {
                Role::Endpoint => no_endpoints(),
                role => no_plugin(role),
            })
        };
        let options = PlanOptions {
            file: self.file.as_deref(),
            files: Some(&mut read),
            plugins: Some(&mut visit),
            ..PlanOptions::default()
        };
        let plan = Plan::from_text(&self.text, options)?;
        match self.cannot_run(&plan) {
            None => Ok(plan),
            Some(fault) => {
                let place = match (&self.file, fault.line) {
                    (Some(file), Some(line)) => format!("{file}:{line}: "),
                    (Some(file), None) => format!("{file}: "),
                    (None, Some(line)) => format!("line {line}: "),
                    (None, None) => String::new(),
                };
                Err(Refusal {
                    text: place + &fault.message,
                    faults: vec![fault],
                })
            }
        }
    }

    /// What only `redtail run` does.
    fn cannot_run(&self, plan: &Plan) -> Option<Fault> {
        let fault = |key: String, message: String| Fault {
            line: line_of(&self.text, &key),
            key: Some(key),
            message,
        };
        let cases = plan.cases.len();
        if cases > MOST_CASES {
            return Some(fault(
                "factors".to_owned(),
                format!(
                    "factors: these make {cases} cases, too many for this page; accepted: at most {MOST_CASES}"
                ),
            ));
        }
        if let Some(backend) = plan.backend.as_deref().filter(|name| *name != "sim") {
            return Some(fault(
                "backend".to_owned(),
                format!("backend = {backend:?}: this page only simulates; accepted: \"sim\""),
            ));
        }
        (0..cases).find_map(|case| {
            if let Some(load) = plan.loads(case).first() {
                let key = format!("traffic.{}.load", load.group);
                let message = format!(
                    "{key}: this page does not look for the users who offer a load; accepted: a number of `users`"
                );
                return Some(fault(key, message));
            }
            let scenario = plan.scenario(case, 0)?;
            if let [(key, name), ..] = scenario.kernel_controls().as_slice() {
                let error = redtail_sim::RunError::OfKernel(key.clone(), (*name).to_owned());
                return Some(fault(key.clone(), error.to_string()));
            }
            let programs = scenario.traffic.iter().find_map(|group| group.programs())?;
            let key = format!("traffic.{}.kind", programs.name);
            let message = format!("{key} = \"program\": only a real kernel runs programs; accepted: another kind of traffic");
            Some(fault(key, message))
        })
    }

    /// The answer to a check.
    pub fn checked(&self) -> Result<Value, Refusal> {
        let plan = self.plan()?;
        let duration = plan.scenario(0, 0).map(|it| it.duration.as_secs_f64());
        let cases = plan.cases.iter().map(|case| {
            let labels: Vec<_> = case.labels.values().filter_map(Value::as_str).collect();
            json!({ "label": labels.join(", "), "factors": case.factors, "labels": case.labels })
        });
        let cases: Vec<_> = cases.collect();
        Ok(json!({
            "ok": true,
            "name": plan.name,
            "description": plan.description,
            "replications": plan.replications,
            "seed": plan.seed,
            "duration_s": duration,
            "factors": plan.factors,
            "cases": cases,
            "warnings": plan.warnings,
            "outline": plan.outline(),
            // What the file asks for beside its runs, which `redtail run` alone does.
            "left_out": left_out(&plan),
        }))
    }
}

/// Keys of the file that change what is computed from runs, and that the page does not use.
fn left_out(plan: &Plan) -> Vec<&'static str> {
    let keys = [
        ("metrics", !plan.derived.is_empty()),
        ("expect", !plan.expected.is_empty()),
        ("replications", plan.stop.is_some()),
    ];
    let given = keys.into_iter().filter(|(_, given)| *given);
    given.map(|(key, _)| key).collect()
}
