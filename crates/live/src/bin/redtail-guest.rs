//! The agent as the first process of a virtual machine.

fn main() {
    #[cfg(target_arch = "x86_64")]
    redtail_live::guest::main();
    #[cfg(not(target_arch = "x86_64"))]
    eprintln!("redtail-guest runs on x86-64 alone");
}
