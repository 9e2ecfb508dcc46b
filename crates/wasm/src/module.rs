//! A module: compiled, and its plug-ins found by the names of its functions.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use redtail_core::plugin::Role;
use wasmtime::{ExternType, FuncType, InstancePre, ValType};

use crate::calls::{ABI, IMPORTS, Signature, State, linker};
use crate::engine::engine;
use crate::{controller, queue};

/// Bytes of the largest module.
pub const MAX_MODULE: usize = 4 << 20;

/// Why a module is refused.
#[derive(Debug)]
pub struct ModuleError {
    /// What is wrong, as a clause.
    pub problem: String,
    /// What is accepted.
    pub accepted: String,
}

impl ModuleError {
    pub(crate) fn new(problem: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            accepted: accepted.into(),
        }
    }
}

impl fmt::Display for ModuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; accepted: {}", self.problem, self.accepted)
    }
}

impl Error for ModuleError {}

/// A compiled module. It is cheap to clone.
#[derive(Clone)]
pub struct Module {
    pub(crate) ready: InstancePre<State>,
    queues: Vec<String>,
    controllers: Vec<String>,
}

impl Module {
    /// Compiles a module in binary form, and refuses one that is not for redtail.
    ///
    /// # Errors
    /// [`ModuleError`]: it is too large, no WebAssembly, or has other functions than those of the interface.
    pub fn new(bytes: &[u8]) -> Result<Self, ModuleError> {
        if bytes.len() > MAX_MODULE {
            return Err(ModuleError::new(
                format!("has {} bytes, more than are read", bytes.len()),
                format!("a module of at most {} MiB", MAX_MODULE >> 20),
            ));
        }
        if !bytes.starts_with(b"\0asm\x01\0\0\0") {
            return Err(ModuleError::new(
                "is no WebAssembly module in binary form, version 1",
                "what clang --target=wasm32 or rustc --target wasm32-unknown-unknown writes",
            ));
        }
        let code = wasmtime::Module::from_binary(engine(), bytes).map_err(|error| {
            ModuleError::new(
                format!("cannot be compiled: {}", one_line(&error)),
                "a valid module without threads, 64-bit memories and relaxed vectors",
            )
        })?;
        check_imports(&code)?;
        check_common(&code)?;
        let queues = names(&code, queue::FUNCTIONS)?;
        let controllers = names(&code, controller::FUNCTIONS)?;
        let ready = linker().and_then(|linker| linker.instantiate_pre(&code));
        let ready = ready.map_err(|error| {
            ModuleError::new(
                format!("cannot be used: {}", one_line(&error)),
                "a module that includes redtail_plugin.h, or the same in Rust",
            )
        })?;
        Ok(Self {
            ready,
            queues,
            controllers,
        })
    }

    /// Returns the queue or controller that is called `name`, or the only one that there is.
    ///
    /// # Errors
    /// [`ModuleError`]: there is none of this name, or none alone.
    pub fn plugin(&self, role: Role, name: Option<&str>) -> Result<&str, ModuleError> {
        let (found, functions): (&[String], _) = match role {
            Role::Queue => (&self.queues, queue::FUNCTIONS),
            Role::Controller => (&self.controllers, controller::FUNCTIONS),
            Role::Endpoint => {
                return Err(ModuleError::new(
                    "cannot be an endpoint",
                    "an endpoint in Rust, in a program of your own",
                ));
            }
        };
        let accepted = || match found {
            [] => {
                let needed = functions.iter().filter(|function| function.needed);
                let names = needed.map(|function| format!("NAME_{}", function.name));
                let names = names.collect::<Vec<_>>().join(", ");
                format!("a module with the functions {names}")
            }
            some => format!("one of {}", some.join(", ")),
        };
        let refused = |problem: String| Err(ModuleError::new(problem, accepted()));
        match (name, found) {
            (None, [only]) => Ok(only),
            (None, []) => refused(format!("has no {role} in it")),
            (None, _) => refused(format!(
                "has several {role}s in it, and \":NAME\" is missing after the file"
            )),
            (Some(name), some) => match some.iter().find(|each| *each == name) {
                Some(found) => Ok(found),
                None => refused(format!("has no {role} {name:?}")),
            },
        }
    }
}

/// The message of the engine without its backtrace.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    let parts = error.chain().map(ToString::to_string);
    let parts: Vec<_> = parts.filter(|part| !part.contains("backtrace:")).collect();
    parts.join(": ").replace('\n', " ")
}

/// Refuses a module that wants functions which redtail does not have.
fn check_imports(code: &wasmtime::Module) -> Result<(), ModuleError> {
    let accepted = || {
        let names = IMPORTS.iter().map(|(name, _)| *name);
        format!(
            "the functions of \"redtail\": {}",
            names.collect::<Vec<_>>().join(", ")
        )
    };
    for import in code.imports() {
        let known = IMPORTS.iter().find(|(name, _)| *name == import.name());
        let Some((_, signature)) = known.filter(|_| import.module() == "redtail") else {
            return Err(ModuleError::new(
                format!("imports {:?} of {:?}", import.name(), import.module()),
                accepted(),
            ));
        };
        let is = import.ty();
        if !is.func().is_some_and(|is| fits(is, signature)) {
            return Err(ModuleError::new(
                format!("imports {:?} with another signature", import.name()),
                format!("{} as in redtail_plugin.h", show(signature)),
            ));
        }
    }
    Ok(())
}

/// Refuses a module without what every module has: its memory, its version of the interface, its buffer.
fn check_common(code: &wasmtime::Module) -> Result<(), ModuleError> {
    match code.get_export("memory") {
        Some(ExternType::Memory(_)) => {}
        _ => {
            return Err(ModuleError::new(
                "exports no memory with the name \"memory\"",
                "a module that includes redtail_plugin.h, or the same in Rust",
            ));
        }
    }
    for (name, signature) in ABI {
        check_function(code, name, signature)?;
    }
    Ok(())
}

/// The names of the plug-ins of a kind, whose functions are checked.
fn names(code: &wasmtime::Module, functions: &[Function]) -> Result<Vec<String>, ModuleError> {
    let exports = || code.exports().map(|export| export.name());
    let telling = functions.iter().filter(|function| function.tells);
    let found: BTreeSet<&str> = telling
        .flat_map(|function| exports().filter_map(|name| name.strip_suffix(function.name)))
        .filter_map(|name| name.strip_suffix('_'))
        .filter(|name| !name.is_empty())
        .collect();
    for name in &found {
        for function in functions {
            let full = format!("{name}_{}", function.name);
            if function.needed || code.get_export(&full).is_some() {
                check_function(code, &full, &function.signature)?;
            }
        }
    }
    Ok(found.into_iter().map(str::to_owned).collect())
}

/// A function of a plug-in.
pub(crate) struct Function {
    /// Its name after the name of the plug-in.
    pub name: &'static str,
    pub signature: Signature,
    pub needed: bool,
    /// Whether a name with this function is the name of such a plug-in.
    pub tells: bool,
}

/// A function that a plug-in may have.
pub(crate) const fn function(
    name: &'static str,
    parameters: &'static str,
    results: &'static str,
) -> Function {
    Function {
        name,
        signature: (parameters, results),
        needed: false,
        tells: false,
    }
}

/// A function that a plug-in needs.
pub(crate) const fn needed(
    name: &'static str,
    parameters: &'static str,
    results: &'static str,
) -> Function {
    Function {
        needed: true,
        ..function(name, parameters, results)
    }
}

/// A function that a plug-in needs, and that shows of what kind it is.
pub(crate) const fn telling(
    name: &'static str,
    parameters: &'static str,
    results: &'static str,
) -> Function {
    Function {
        tells: true,
        ..needed(name, parameters, results)
    }
}

fn check_function(
    code: &wasmtime::Module,
    name: &str,
    signature: &Signature,
) -> Result<(), ModuleError> {
    let accepted = || format!("{} as in redtail_plugin.h", show(signature));
    match code.get_export(name) {
        Some(ExternType::Func(is)) if fits(&is, signature) => Ok(()),
        Some(ExternType::Func(_)) => Err(ModuleError::new(
            format!("has a function {name} with another signature"),
            accepted(),
        )),
        _ => Err(ModuleError::new(
            format!("has no function {name}"),
            accepted(),
        )),
    }
}

fn fits(is: &FuncType, (parameters, results): &Signature) -> bool {
    let same = |types: Vec<ValType>, letters: &str| {
        types.len() == letters.len()
            && types
                .iter()
                .zip(letters.chars())
                .all(|(is, letter)| match letter {
                    'i' => matches!(is, ValType::I32),
                    'l' => matches!(is, ValType::I64),
                    _ => matches!(is, ValType::F64),
                })
    };
    same(is.params().collect(), parameters) && same(is.results().collect(), results)
}

/// A signature as WebAssembly writes it.
fn show((parameters, results): &Signature) -> String {
    let types = |letters: &str| {
        let names = letters.chars().map(|letter| match letter {
            'i' => "i32",
            'l' => "i64",
            _ => "f64",
        });
        names.collect::<Vec<_>>().join(", ")
    };
    format!("({}) -> ({})", types(parameters), types(results))
}
