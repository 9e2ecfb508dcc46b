//! What a link adds to each packet.
//!
//! Sources: tc-cake(8) and iproute2 6.1, tc/q_cake.c, for the words; Linux 6.1, `cake_calc_overhead` in sch_cake.c, for
//! the size.
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | L, size of an IP packet | | bytes |
//! | o, what the link adds to each packet | `bytes` | bytes |
//! | m, smallest packet on the link, o included | `mpu` | bytes |
//!
//! ```text
//! s = max(L + o, m)
//! size on the link:  s               no framing
//!                    53 ceil(s / 48)   ATM: cells of 53 bytes with 48 bytes of payload
//!                    s + ceil(s / 64)  PTM: a byte more for every 64
//! ```

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, params, schemars, serde};

/// How a link frames packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum Framing {
    /// No framing: each packet takes its own size.
    #[default]
    None,
    /// In cells of 53 bytes with 48 bytes of payload (ATM, ADSL).
    Atm,
    /// With one extra byte for every 64 bytes (PTM, VDSL2).
    Ptm,
}

/// The most that a link may add to a packet, and the largest of its smallest packets: those of
/// `tc-cake`, which takes an `mpu` of 0 to 256 and an `overhead` of -64 to 256.
pub const MOST_FRAMING: Bytes = Bytes::new(256);

params! {
    /// What a link adds to each packet.
    #[schemars(rename = "LinkOverhead")]
    pub struct LinkLayerParams {
        /// Bytes that the link adds to each IP packet; up to "256 B".
        bytes: Bytes = Bytes::ZERO, "none, as in Linux 6.1, `sch_cake`.";
        /// Smallest packet on the link, `bytes` included; up to "256 B".
        mpu: Bytes = Bytes::ZERO, "none, as in Linux 6.1, `sch_cake`.";
        /// How the link frames packets.
        framing: Framing = Framing::None, "none, as in Linux 6.1, `sch_cake`.";
    }
}

/// What a word of tc-cake sets. `None` leaves what the words before it have set.
struct Word {
    name: &'static str,
    bytes: u64,
    mpu: Option<u64>,
    framing: Option<Framing>,
}

const fn word(name: &'static str, bytes: u64, framing: Option<Framing>) -> Word {
    Word {
        name,
        bytes,
        mpu: None,
        framing,
    }
}

const fn with_mpu(name: &'static str, bytes: u64, mpu: u64, framing: Option<Framing>) -> Word {
    Word {
        mpu: Some(mpu),
        ..word(name, bytes, framing)
    }
}

/// The words of tc-cake. Bytes of several words add up.
const WORDS: &[Word] = &[
    word("noatm", 0, Some(Framing::None)),
    word("atm", 0, Some(Framing::Atm)),
    word("ptm", 0, Some(Framing::Ptm)),
    word("conservative", 48, Some(Framing::Atm)),
    word("ipoa-vcmux", 8, Some(Framing::Atm)),
    word("ipoa-llcsnap", 16, Some(Framing::Atm)),
    word("bridged-vcmux", 24, Some(Framing::Atm)),
    word("bridged-llcsnap", 32, Some(Framing::Atm)),
    word("pppoa-vcmux", 10, Some(Framing::Atm)),
    word("pppoa-llc", 14, Some(Framing::Atm)),
    word("pppoe-vcmux", 32, Some(Framing::Atm)),
    word("pppoe-llcsnap", 40, Some(Framing::Atm)),
    word("pppoe-ptm", 30, Some(Framing::Ptm)),
    word("bridged-ptm", 22, Some(Framing::Ptm)),
    with_mpu("ethernet", 38, 84, None),
    word("ether-vlan", 4, None),
    with_mpu("docsis", 18, 64, Some(Framing::None)),
];

impl LinkLayerParams {
    /// The size that a packet of this size has on the link.
    #[inline]
    pub fn size(&self, packet: Bytes) -> Bytes {
        let size = (packet.as_u64() + self.bytes.as_u64()).max(self.mpu.as_u64());
        Bytes::new(match self.framing {
            Framing::None => size,
            Framing::Atm => size.div_ceil(48) * 53,
            Framing::Ptm => size + size.div_ceil(64),
        })
    }

    /// The key whose value is too large, if there is one.
    pub fn too_large(&self) -> Option<&'static str> {
        let sizes = [("bytes", self.bytes), ("mpu", self.mpu)];
        let large = sizes.into_iter().find(|(_, size)| *size > MOST_FRAMING);
        large.map(|(key, _)| key)
    }

    /// What these words of tc-cake stand for together.
    ///
    /// ```
    /// use redtail_core::Bytes;
    /// use redtail_qdisc::link_layer::LinkLayerParams;
    ///
    /// let adsl = LinkLayerParams::named("pppoe-vcmux")?;
    /// // 40 B and 32 B are two cells of 48 B.
    /// assert_eq!(adsl.size(Bytes::new(40)), Bytes::new(106));
    /// let tagged = LinkLayerParams::named("ethernet ether-vlan")?;
    /// assert_eq!(tagged.size(Bytes::new(1500)), Bytes::new(1542));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// The word that is not known, and those that are.
    pub fn named(words: &str) -> Result<Self, String> {
        let mut layer = Self::default();
        let mut any = false;
        for name in words.split_whitespace() {
            let Some(word) = WORDS.iter().find(|word| word.name == name) else {
                return Err(refusal(name));
            };
            any = true;
            layer.bytes = Bytes::new(layer.bytes.as_u64() + word.bytes);
            if let Some(mpu) = word.mpu {
                layer.mpu = Bytes::new(mpu);
            }
            layer.framing = word.framing.unwrap_or(layer.framing);
        }
        match any {
            true => Ok(layer),
            false => Err(refusal(words)),
        }
    }
}

fn refusal(word: &str) -> String {
    let names: Vec<&str> = WORDS.iter().map(|word| word.name).collect();
    format!(
        "{word:?} is no link layer; accepted: words of tc-cake ({}), or a table with bytes, mpu and framing",
        names.join(", ")
    )
}
