//! Makes `REDTAIL_CODE_VERSION`: a hash over everything that can change a
//! result, so that a result of other code is never taken for a fresh one.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// FNV-1a over 128 bits: no collisions by accident, and no dependency.
fn fnv1a(hash: u128, bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(hash, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    })
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("the sources are readable")
        .flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What `redtail-sim` is made of. A crate that is missing here would let old results pass for new.
const SIM: [&str; 7] = [
    "core",
    "qdisc",
    "transport",
    "traffic",
    "spec",
    "network",
    "sim",
];

/// A hash over the sources of these crates and the versions of their dependencies.
fn hash(root: &Path, crates: &[&str]) -> u128 {
    let mut files = vec![root.join("Cargo.lock")];
    for name in crates {
        let folder = root.join("crates").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        sources(&folder, &mut files);
    }
    println!("cargo::rerun-if-changed={}", files[0].display());
    files.sort();
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    files.iter().fold(OFFSET, |hash, file| {
        let name = file.strip_prefix(root).expect("sources lie below the root");
        let hash = fnv1a(hash, name.to_string_lossy().as_bytes());
        fnv1a(hash, &fs::read(file).expect("the sources are readable"))
    })
}

fn main() {
    // When it runs, and not when it was compiled: a copied folder of builds belongs to other sources.
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&here).join("../..");
    let sim = hash(&root, &SIM);
    println!("cargo::rustc-env=REDTAIL_CODE_VERSION={sim:032x}");
    let live = hash(&root, &["live"]) ^ sim.rotate_left(1);
    println!("cargo::rustc-env=REDTAIL_LIVE_VERSION={live:032x}");
}
