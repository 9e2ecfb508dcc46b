//! Which modules are accepted, and what is said of the others.

use redtail_core::plugin::Role;
use redtail_wasm::{MAX_MODULE, Module};

use crate::bounds::{QUEUE, module};

fn refused(text: &str) -> String {
    let code = wat::parse_str(text).expect("a module");
    match Module::new(&code).and_then(|module| module.plugin(Role::Queue, None).map(str::to_owned))
    {
        Ok(name) => panic!("{name} is accepted"),
        Err(error) => error.to_string(),
    }
}

/// A module with everything that one needs, changed.
fn changed(from: &str, to: &str) -> String {
    let text = module(QUEUE);
    assert!(text.contains(from), "{from} is in {text}");
    text.replace(from, to)
}

#[test]
fn a_module_has_its_queues_by_name() {
    let code = wat::parse_str(module(QUEUE)).expect("a module");
    let found = Module::new(&code).expect("a module for redtail");
    assert_eq!(found.plugin(Role::Queue, None).expect("one"), "mine");
    assert_eq!(
        found.plugin(Role::Queue, Some("mine")).expect("this one"),
        "mine"
    );
    let error = found
        .plugin(Role::Queue, Some("yours"))
        .expect_err("none")
        .to_string();
    assert_eq!(error, "has no queue \"yours\"; accepted: one of mine");
}

#[test]
fn of_several_queues_one_is_named() {
    let both = format!("{QUEUE}{}", QUEUE.replace("mine_", "yours_"));
    let code = wat::parse_str(module(&both)).expect("a module");
    let found = Module::new(&code).expect("a module for redtail");
    let error = found
        .plugin(Role::Queue, None)
        .expect_err("two")
        .to_string();
    assert!(
        error.contains("several") && error.ends_with("one of mine, yours"),
        "{error}"
    );
    assert_eq!(
        found.plugin(Role::Queue, Some("yours")).expect("this one"),
        "yours"
    );
}

#[test]
fn other_imports_are_refused_by_name() {
    let import = "(import \"wasi_snapshot_preview1\" \"fd_write\" (func (param i32)))";
    let error = refused(&changed(
        "(import \"redtail\"",
        &format!("{import} (import \"redtail\""),
    ));
    let said = "imports \"fd_write\" of \"wasi_snapshot_preview1\"; accepted: the functions of \"redtail\": drop";
    assert!(error.starts_with(said), "{error}");
    let error = refused(&changed("\"redtail\" \"uniform\"", "\"redtail\" \"clock\""));
    assert!(
        error.starts_with("imports \"clock\" of \"redtail\""),
        "{error}"
    );
    let error = refused(&changed("(result f64)", "(result f32)"));
    assert!(
        error.contains("\"uniform\" with another signature"),
        "{error}"
    );
    // A memory that redtail would have to give.
    let memory = changed(
        "(memory (export \"memory\") 1)",
        "(memory (export \"memory\") (import \"redtail\" \"memory\") 1)",
    );
    assert!(refused(&memory).contains("imports \"memory\""));
}

#[test]
fn what_a_module_needs_is_named() {
    for (from, to, said) in [
        (
            "(export \"mine_dequeue\")",
            "",
            "has no function mine_dequeue",
        ),
        ("(export \"mine_new\")", "", "has no function mine_new"),
        (
            "(export \"redtail_abi\")",
            "",
            "has no function redtail_abi",
        ),
        ("(export \"memory\")", "", "exports no memory"),
        (
            "(param i64) (result i64)",
            "(param i32) (result i64)",
            "mine_dequeue with another signature",
        ),
        (
            "\"mine_dequeue\"",
            "\"mine_take\"",
            "has no function mine_dequeue",
        ),
    ] {
        let error = refused(&changed(from, to));
        assert!(
            error.contains(said) && error.contains("accepted: "),
            "{said}: {error}"
        );
    }
    assert!(refused(&module("")).starts_with("has no queue in it"));
}

#[test]
fn what_is_no_module_is_refused() {
    let whole = wat::parse_str(module(QUEUE)).expect("a module");
    let said = |code: &[u8]| Module::new(code).err().expect("refused").to_string();
    assert!(said(b"").contains("no WebAssembly"));
    assert!(said(b"(module)").contains("no WebAssembly"));
    // A component has another version.
    assert!(said(b"\0asm\x0d\0\x01\0").contains("no WebAssembly"));
    // Wherever it is cut before its code, which is in the second half. A cut between later sections leaves a module.
    for end in 9..whole.len() / 2 {
        if let Ok(module) = Module::new(&whole[..end]) {
            panic!(
                "{end} of {} bytes are accepted: {:?}",
                whole.len(),
                module.plugin(Role::Queue, None)
            );
        }
    }
    let large = vec![0; MAX_MODULE + 1];
    assert!(said(&large).contains("more than are read"));
}

#[test]
fn proposals_whose_results_may_differ_are_refused() {
    let shared = changed(
        "(memory (export \"memory\") 1)",
        "(memory (export \"memory\") 1 1 shared)",
    );
    assert!(refused(&shared).starts_with("cannot be compiled"));
    let wide = changed(
        "(memory (export \"memory\") 1)",
        "(memory (export \"memory\") i64 1)",
    );
    assert!(refused(&wide).starts_with("cannot be compiled"));
    let relaxed = changed(
        "(func (export \"redtail_buffer\")",
        "(func (param v128 v128 v128) (result v128) (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))
         (func (export \"redtail_buffer\")",
    );
    assert!(refused(&relaxed).starts_with("cannot be compiled"));
}
