//! Plug-ins that are WebAssembly modules.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use redtail_core::plugin::{Role, Value};
use redtail_sim::Plugins;
use redtail_wasm::{Module, ModuleError};

/// A plug-in of a module, compiled.
#[pyclass(frozen, module = "redtail._native")]
pub struct Compiled {
    module: Module,
    role: Role,
    /// Its name in the module.
    #[pyo3(get)]
    name: String,
}

#[pymethods]
impl Compiled {
    /// Compiles a module, and finds the queue or controller of this name in it, or the only one. Raises `ValueError` with what is
    /// wrong and what is accepted. Nothing is executed.
    #[new]
    fn new(py: Python<'_>, code: &[u8], role: &str, name: Option<&str>) -> PyResult<Self> {
        let role = match role {
            "controller" => Role::Controller,
            _ => Role::Queue,
        };
        let code = code.to_vec();
        let refused = |error: ModuleError| PyValueError::new_err((error.problem, error.accepted));
        let module = py.detach(|| Module::new(&code)).map_err(refused)?;
        let name = module.plugin(role, name).map_err(refused)?.to_owned();
        Ok(Self { module, role, name })
    }

    /// Executes the part of the module that reads `params`, which are JSON: the key, the problem and what is accepted
    /// if it refuses them.
    fn refuses(&self, params: &str) -> PyResult<Option<(String, String, String)>> {
        let params: BTreeMap<String, Value> = serde_json::from_str(params)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let wrong = self.module.wrong_param(self.role, &self.name, &params);
        Ok(wrong.map(|wrong| (wrong.key, wrong.problem, wrong.accepted)))
    }
}

impl Compiled {
    /// Adds it to the plug-ins of a run, by its name in the file.
    pub fn add(&self, plugins: Plugins, name: &str, cancel: &Arc<AtomicBool>) -> Plugins {
        let (module, own) = (self.module.clone(), self.name.clone());
        let cancel = Arc::clone(cancel);
        match self.role {
            Role::Queue => plugins.with(name, move |identity, context| {
                module.make_queue(&own, identity, context, &cancel)
            }),
            Role::Controller => plugins.with_controller(name, move |identity, context| {
                module.make_controller(&own, identity, context, &cancel)
            }),
            // `Module::plugin` finds none in a module.
            Role::Endpoint => plugins,
        }
    }
}
