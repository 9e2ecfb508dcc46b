//! Starts the adaptation of the kernel's RED, which `tc` does not start.
//!
//! The kernel reads the flag of the adaptation in two places. It shows the queue as adaptive if the flag
//! is in the attribute TCA_RED_FLAGS, where iproute2 puts it since it knows `nodrop`. It starts the timer that
//! changes max_p only if the flag is in the field `flags` of `struct tc_red_qopt` (`__red_change`,
//! net/sched/sch_red.c). So the options that tc has made are read back and sent again, with the flag
//! there. What the kernel reports of a queue lacks one part, the table of idle periods; it is computed here.
//!
//! # The table of idle periods
//!
//! Symbols: W the weight of the average, t the time of a mean packet at the link's rate in ticks of 64 ns,
//! s the shift that is reported as `Scell_log`. During an idle time of i 2^s ticks, i 2^s / t packets could
//! have left, and the average decays by (1 - W)^(i 2^s / t). Entry i is by how many places the kernel
//! shifts the average to the right then:
//!
//! ```text
//! table[i] = min(31, floor(-ln(1 - W) i 2^s / t))
//! s = the least for which the last entry is reached with 31:  31 t / -ln(1 - W) < 512 2^s
//! ```
//!
//! Source: what iproute2 6.1 sends (`tc_red_eval_idle_damping`, tc/tc_red.c). [`start`] compares s with the
//! kernel's.

use std::io;

use crate::sys::netlink::QueueWatch;
use crate::tc::MeanPacket;

/// Ticks of the kernel's packet scheduler in a second (/proc/net/psched).
const TICKS: f64 = 1e9 / 64.0;

/// The flag in `tc_red_qopt` (`TC_RED_ADAPTATIVE`, linux/pkt_sched.h).
const ADAPTIVE: u8 = 4;

/// Starts the adaptation of a queue `red` that tc has made with this mean packet.
///
/// # Errors
/// When the kernel refuses it, or has other options than tc computes.
pub fn start(queue: &QueueWatch, mean_packet: MeanPacket) -> io::Result<()> {
    let mut options = queue.red()?;
    let (shift, table) = idle_table(options.weight_exponent, mean_packet);
    if shift != options.idle_shift {
        return Err(io::Error::other(format!(
            "the queue \"red\" has Scell_log {} and not {shift}, as tc computes it for a weight of 2^-{}",
            options.idle_shift, options.weight_exponent
        )));
    }
    options.flags |= ADAPTIVE;
    queue.change_red(&options, &table)
}

/// The table of idle periods and its shift.
fn idle_table(weight_exponent: u8, mean_packet: MeanPacket) -> (u8, [u8; 256]) {
    let bytes_per_second = (mean_packet.rate.as_bps() / 8) as f64;
    // As tc: microseconds first, both as whole numbers.
    let micros = (1e6 * mean_packet.size.as_u64() as f64 / bytes_per_second).floor();
    let ticks = (micros * TICKS / 1e6).floor();
    let decay = -(-f64::from(-i32::from(weight_exponent)).exp2()).ln_1p() / ticks;
    let shift = (0..31)
        .find(|&shift| 31.0 / decay / f64::from(1u32 << shift) < 512.0)
        .unwrap_or(31);
    let mut table = [31; 256];
    for (i, entry) in table.iter_mut().enumerate().take(255) {
        let places = i as f64 * f64::from(1u32 << shift) * decay;
        *entry = places.min(31.0) as u8;
    }
    (shift, table)
}

#[cfg(test)]
mod tests {
    use redtail_core::{Bytes, Rate};

    use super::*;

    fn mean_packet(size: u64, bps: u64) -> MeanPacket {
        MeanPacket {
            size: Bytes::new(size),
            rate: Rate::from_bps(bps),
        }
    }

    #[test]
    fn the_shift_is_what_a_kernel_reported() {
        // tests/fixtures/tc/red.json
        assert_eq!(idle_table(9, mean_packet(1500, 10_000_000)).0, 20);
    }

    #[test]
    fn the_table_rises_with_the_idle_time_up_to_all_bits() {
        for (exponent, packet) in [
            (9, mean_packet(1500, 10_000_000)),
            (4, mean_packet(1000, 140_000)),
        ] {
            let (_, table) = idle_table(exponent, packet);
            assert_eq!((table[0], table[255]), (0, 31));
            assert!(table.windows(2).all(|pair| pair[0] <= pair[1]));
            assert!(table[254] >= 15, "the table spans the decay");
        }
    }
}
