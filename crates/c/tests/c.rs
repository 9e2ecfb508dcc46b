//! The functions as a program in C calls them: the example is compiled with the header and the library, and run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The C compiler, if there is one that takes these options.
fn compiler() -> Option<String> {
    let name = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let found = cfg!(unix) && Command::new(&name).arg("--version").output().is_ok();
    found.then_some(name)
}

/// The folder in which Cargo puts this program and, beside it, the library.
fn built() -> PathBuf {
    let program = std::env::current_exe().expect("a program knows itself");
    program.parent().expect("it is in a folder").to_owned()
}

/// The output of the program that is compiled from `source`; `None` without a compiler.
fn output(source: &Path, options: &[&str]) -> Option<String> {
    let Some(compiler) = compiler() else {
        println!("skipped: no C compiler (cc, or the one that CC names)");
        return None;
    };
    let name = source.file_name().expect("a file has a name");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("Cargo's folder can be written");
    let program = folder.join("program");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new(compiler)
        .args(options)
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join(source))
        .arg(built().join("libredtail_c.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("the compiler was there");
    let messages = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{messages}");
    assert_eq!(messages, "", "the header gives no warnings");
    let run = Command::new(&program).output().expect("it was compiled");
    assert!(run.status.success(), "{run:?}");
    Some(String::from_utf8(run.stdout).expect("it prints text"))
}

const STRICT: [&str; 5] = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

#[test]
fn the_example_keeps_its_datagrams_and_gets_their_handles_back() {
    let Some(printed) = output(Path::new("examples/bottleneck.c"), &STRICT) else {
        return;
    };
    // One is transmitted and eight wait, so three do not fit. 1250 B at 10 Mbit/s take 1 ms.
    let mut expected: Vec<String> = (9..12)
        .map(|i| format!("datagram {i} was dropped"))
        .collect();
    expected.extend((0..9).map(|i| format!("datagram {i} after {} ms", 21 + i)));
    let (lines, refusal) = printed
        .trim_end()
        .rsplit_once('\n')
        .expect("two lines at least");
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    assert!(refusal.starts_with("refused: target = 5: "), "{refusal}");
}

/// What the header says of null pointers, of fields out of range and of a reason that does not fit.
#[test]
fn a_call_that_cannot_be_done_does_nothing() {
    let Some(printed) = output(Path::new("tests/refusals.c"), &STRICT) else {
        return;
    };
    assert_eq!(printed, "done\n");
}
