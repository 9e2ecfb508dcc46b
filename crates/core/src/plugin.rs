//! Plug-ins: queues and congestion controllers of users, in Python, WebAssembly, or Rust in a crate of its own.
//!
//! Here is what all kinds share. What a plug-in does is a trait in the crate that calls it: `PluginQueue` in
//! `redtail-qdisc`, `PluginController` in `redtail-transport`.
//!
//! The experiment file names a plug-in by a text (`class`) and passes it a free table (`params`): its [`Identity`].
//! [`Registry`], which is given when the run is started, maps the text to what makes the plug-in.
//!
//! A plug-in that fails, or breaks its contract, ends the run at once, because later results would have no
//! meaning. The traits of built-in queues and controllers have no errors, so that these need not test for them; the
//! failure is an unwinding that [`catching`] ends.
//!
//! The hash of the source of a Python class, and of all that it imports, is part of the scenario.

mod value;

use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

pub use value::Value;

use crate::{ParamError, Time};

/// What a plug-in is in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The queue of a link.
    Queue,
    /// The congestion controller of a TCP sender.
    Controller,
    /// An end of a flow.
    Endpoint,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Controller => "controller",
            Self::Endpoint => "endpoint",
        })
    }
}

/// A plug-in as a table of the experiment file names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The text that names it.
    pub class: String,
    /// The parameters that are passed to it.
    pub params: BTreeMap<String, Value>,
    /// The hash of its source, once it is known.
    pub source: Option<String>,
}

impl Identity {
    /// Refuses a class without a name, and parameters that JSON does not have.
    ///
    /// # Errors
    /// [`ParamError`] names the key, the problem and what is accepted.
    pub fn check(&self, example: &str) -> Result<(), ParamError> {
        if self.class.is_empty() {
            let accepted = format!("a name such as \"{example}\"");
            return Err(ParamError::new("class", "names nothing", accepted));
        }
        match self.params.iter().find(|(_, value)| !value.is_finite()) {
            Some((key, _)) => Err(ParamError::new(
                format!("params.{key}"),
                "has a number without bounds in it",
                "finite numbers",
            )),
            None => Ok(()),
        }
    }
}

/// A visitor of the plug-ins of an experiment before its runs: it gets the key of each plug-in's table, and can complete
/// or refuse what the table has.
pub type PluginVisitor<'a> = dyn FnMut(&str, Role, &mut Identity) -> Result<(), ParamError> + 'a;

/// A kind of plug-in: the trait object that is called.
pub trait Pluggable {
    /// The surroundings for which one is made.
    type Context;

    /// What it is in a run.
    const ROLE: Role;
}

/// Makes a plug-in.
type Make<P> =
    dyn Fn(&Identity, <P as Pluggable>::Context) -> Result<Box<P>, PluginError> + Send + Sync;

/// The plug-ins of a kind by their names in an experiment file.
pub struct Registry<P: ?Sized + Pluggable>(BTreeMap<String, Arc<Make<P>>>);

impl<P: ?Sized + Pluggable> Registry<P> {
    /// No plug-ins.
    pub fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a plug-in: for `class = "NAME"`, `make` returns it.
    #[must_use]
    pub fn with<M>(mut self, name: &str, make: M) -> Self
    where
        M: Fn(&Identity, P::Context) -> Result<Box<P>, PluginError> + Send + Sync + 'static,
    {
        self.0.insert(name.to_owned(), Arc::new(make));
        self
    }

    /// Makes the plug-in that `identity` names.
    ///
    /// # Errors
    /// It is not known, or cannot be made.
    pub fn make(&self, identity: &Identity, context: P::Context) -> Result<Box<P>, PluginError> {
        let Some(make) = self.0.get(&identity.class) else {
            let known: Vec<_> = self.0.keys().map(String::as_str).collect();
            let known = match known.as_slice() {
                [] => "none".to_owned(),
                known => known.join(", "),
            };
            return Err(PluginError::new(format!(
                "this run was started without it; known: {known}"
            )));
        };
        make(identity, context)
    }
}

impl<P: ?Sized + Pluggable> Clone for Registry<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: ?Sized + Pluggable> Default for Registry<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ?Sized + Pluggable> fmt::Debug for Registry<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The cause of a failure that is none: the run was cancelled.
pub struct CancelledWithin;

/// An error of a plug-in.
#[derive(Debug)]
pub struct PluginError {
    text: String,
    cause: Option<Box<dyn Any + Send + Sync>>,
}

impl PluginError {
    /// An error with the message `text`, a clause.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cause: None,
        }
    }

    /// Puts in front of the message which of several alike plug-ins failed.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        Self {
            text: format!("{name}: {}", self.text),
            ..self
        }
    }

    /// Adds a cause, for the code that started the run.
    #[must_use]
    pub fn because(self, cause: impl Any + Send + Sync) -> Self {
        Self {
            cause: Some(Box::new(cause)),
            ..self
        }
    }

    /// Returns the cause, if it is a `T`.
    pub fn cause<T: Any>(&self) -> Option<&T> {
        self.cause.as_ref()?.downcast_ref()
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for PluginError {}

/// The failure of a plug-in, which ended the run.
#[derive(Debug)]
pub struct PluginFailure {
    /// What the plug-in is in the run.
    pub role: Role,
    /// The plug-in, as the experiment file names it.
    pub class: String,
    /// The method that failed; `"new"` if the plug-in could not be made.
    pub method: &'static str,
    /// The simulated time of the failure; `None` before or after the run.
    pub at: Option<Time>,
    /// What went wrong.
    pub error: PluginError,
}

impl PluginFailure {
    /// Returns the problem, as a clause.
    pub fn problem(&self) -> String {
        self.error.to_string()
    }

    /// Returns the cause that the plug-in gave, if it is a `T`.
    pub fn cause<T: Any>(&self) -> Option<&T> {
        self.error.cause()
    }

    /// Ends the run with this failure.
    #[cold]
    pub fn raise(self) -> ! {
        if cfg!(panic = "abort") {
            panic!("{self}");
        }
        // This is not a panic, because the user must not see a message about a fault of redtail.
        resume_unwind(Box::new(self))
    }
}

impl fmt::Display for PluginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the {} {:?} failed in {}",
            self.role, self.class, self.method
        )?;
        if let Some(at) = self.at {
            write!(f, " at {} s", at.as_secs_f64())?;
        }
        write!(f, ": {}", self.error)
    }
}

impl Error for PluginFailure {}

/// Runs `run`, and returns the failure of a plug-in that ended it. Panics continue.
///
/// # Errors
/// [`PluginFailure`] when a plug-in failed.
pub fn catching<R>(run: impl FnOnce() -> R) -> Result<R, Box<PluginFailure>> {
    // The unwinding drops the state of the run, so no incomplete state stays visible.
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast() {
        Ok(failure) => failure,
        Err(panic) => resume_unwind(panic),
    })
}
