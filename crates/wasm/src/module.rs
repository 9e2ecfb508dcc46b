//! A module: compiled, and its plug-ins found by the names of its functions.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use wasmtime::{ExternType, FuncType, ValType};

use crate::calls::{ABI, IMPORTS, Signature};
use crate::engine::engine;
use crate::queue;

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
    pub(crate) code: wasmtime::Module,
    queues: Vec<String>,
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
        let queues = names(&code, queue::FUNCTIONS);
        for name in &queues {
            check_functions(&code, name, queue::FUNCTIONS)?;
        }
        Ok(Self { code, queues })
    }

    /// Returns the queue that is called `name`, or the only one that there is.
    ///
    /// # Errors
    /// [`ModuleError`]: there is none of this name, or none alone.
    pub fn queue(&self, name: Option<&str>) -> Result<&str, ModuleError> {
        let accepted = || match self.queues.as_slice() {
            [] => "a module with the functions NAME_new, NAME_enqueue and NAME_dequeue".to_owned(),
            some => format!("one of {}", some.join(", ")),
        };
        match (name, self.queues.as_slice()) {
            (None, [only]) => Ok(only),
            (None, []) => Err(ModuleError::new("has no queue in it", accepted())),
            (None, _) => Err(ModuleError::new(
                "has several queues in it, and \":NAME\" is missing after the file",
                accepted(),
            )),
            (Some(name), some) => match some.iter().find(|each| *each == name) {
                Some(found) => Ok(found),
                None => Err(ModuleError::new(
                    format!("has no queue {name:?}"),
                    accepted(),
                )),
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

/// The names of plug-ins: those for which the first function with a signature of its own is there.
fn names(code: &wasmtime::Module, functions: &[Function]) -> Vec<String> {
    let exports: BTreeSet<&str> = code.exports().map(|export| export.name()).collect();
    let telling = functions.iter().filter(|function| function.tells);
    let found = telling.flat_map(|function| {
        let names = exports
            .iter()
            .filter_map(|name| name.strip_suffix(function.name));
        names
            .map(|name| name.strip_suffix('_').unwrap_or(""))
            .collect::<Vec<_>>()
    });
    let found: BTreeSet<&str> = found.filter(|name| !name.is_empty()).collect();
    found.into_iter().map(str::to_owned).collect()
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

fn check_functions(
    code: &wasmtime::Module,
    name: &str,
    functions: &[Function],
) -> Result<(), ModuleError> {
    for function in functions {
        let full = format!("{name}_{}", function.name);
        if function.needed || code.get_export(&full).is_some() {
            check_function(code, &full, &function.signature)?;
        }
    }
    Ok(())
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
