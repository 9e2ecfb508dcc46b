//! Captures that are written here byte by byte, and what is read of them.

mod links;
mod packets;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use redtail_recordings::{Capture, ReadError, read};

const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const LINUX_SLL: u32 = 113;
const LINUX_SLL2: u32 = 276;

/// A file that is removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(content: &[u8]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("redtail-recordings-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, content).expect("the temporary folder can be written");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A pcap file of packets, one a millisecond.
fn pcap(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (number, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        for word in [100, 1000 * number as u32, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn captured(link: u32, packets: &[Vec<u8>]) -> Capture {
    read(&Scratch::new(&pcap(link, packets)).0).expect("it is a capture")
}

fn refused(content: &[u8]) -> String {
    match read(&Scratch::new(content).0) {
        Err(ReadError::Form(text)) => text,
        other => panic!("not refused for its form: {other:?}"),
    }
}
