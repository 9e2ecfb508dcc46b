//! The plug-ins of a run.

use redtail_core::plugin::{Identity, PluginError};
use redtail_qdisc::plugin::{PluginContext, PluginQueue};
use redtail_transport::plugin::{self as controller, PluginController};

use crate::endpoint::{Endpoint, EndpointContext, Endpoints};

/// The queues, controllers and endpoints of users by their names in an experiment file.
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    /// The queues of kind `plugin`.
    pub queues: redtail_qdisc::Plugins,
    /// The congestion controllers of `tcp` tables with a `class`.
    pub controllers: redtail_transport::Plugins,
    /// The endpoints of groups of kind `endpoint`.
    pub endpoints: Endpoints,
}

impl Plugins {
    /// No plug-ins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a queue: for `class = "NAME"`, `make` returns it.
    #[must_use]
    pub fn with<M>(self, name: &str, make: M) -> Self
    where
        M: Fn(&Identity, PluginContext) -> Result<Box<dyn PluginQueue>, PluginError>
            + Send
            + Sync
            + 'static,
    {
        Self {
            queues: self.queues.with(name, make),
            ..self
        }
    }

    /// Adds a controller: for `class = "NAME"`, `make` returns it.
    #[must_use]
    pub fn with_controller<M>(self, name: &str, make: M) -> Self
    where
        M: Fn(
                &Identity,
                controller::PluginContext,
            ) -> Result<Box<dyn PluginController>, PluginError>
            + Send
            + Sync
            + 'static,
    {
        Self {
            controllers: self.controllers.with(name, make),
            ..self
        }
    }

    /// Adds endpoints: for each end of a flow of a group with `class = "NAME"`, `make` returns the endpoint.
    #[must_use]
    pub fn with_endpoint<M>(self, name: &str, make: M) -> Self
    where
        M: Fn(&Identity, EndpointContext) -> Result<Box<dyn Endpoint>, PluginError>
            + Send
            + Sync
            + 'static,
    {
        Self {
            endpoints: self.endpoints.with(name, make),
            ..self
        }
    }
}
