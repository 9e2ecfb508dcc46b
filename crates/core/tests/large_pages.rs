//! The allocator that asks for large pages, as that of a program.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use redtail_core::LargePages;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

/// Whether the memory at `address` is in a mapping for which large pages were asked for: the flag `hg` in
/// /proc/self/smaps (proc_pid_smaps(5)).
fn asks_for_large_pages(address: usize) -> bool {
    let text = fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let mut is_here = false;
    for line in text.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        let range = first.split_once('-').and_then(|(from, to)| {
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(from)?..number(to)?)
        });
        if let Some(range) = range {
            is_here = range.contains(&address);
        } else if is_here && let Some(flags) = line.strip_prefix("VmFlags:") {
            return flags.split_whitespace().any(|flag| flag == "hg");
        }
    }
    panic!("{address:x} is in no mapping");
}

/// The address in the middle of `values`.
fn middle<T>(values: &[T]) -> usize {
    std::ptr::from_ref(&values[values.len() / 2]).addr()
}

#[test]
fn large_allocations_ask_for_large_pages() {
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return; // this kernel has none
    }
    let small = vec![1_u8; 1 << 20];
    assert!(!asks_for_large_pages(middle(&small)));
    let zeroed = vec![0_u64; 8 << 20];
    assert!(!asks_for_large_pages(middle(&zeroed)));
    let filled = vec![1_u64; 8 << 20];
    assert!(asks_for_large_pages(middle(&filled)));
    // It grows from small to large, with its values.
    let mut grown = Vec::new();
    for value in 0..1_u32 << 24 {
        grown.push(value);
    }
    assert!(asks_for_large_pages(middle(&grown)));
    assert!((0..).zip(&grown).all(|(i, &value)| value == i));
}
