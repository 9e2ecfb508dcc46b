//! The data that the application sends.

/// The data that the application sends, and how it ends. Offsets and sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendStream {
    /// What is sent in total; `u64::MAX` for an endless stream that the application has not closed.
    pub size: u64,
    /// The application has closed: nothing follows `size`.
    pub closed: bool,
    /// Whether it ends with a FIN, which is one more byte after `size`.
    pub fin: bool,
    /// Whether the last data that the application wrote is pushed (PSH).
    pub pushes: bool,
    /// The application has closed and nothing has held its data back since: what leaves now leaves
    /// before the FIN.
    pub fresh: bool,
}

impl SendStream {
    /// A stream of `size` bytes that is closed after them; an endless one without `size`.
    pub fn new(size: Option<u64>, pushes: bool) -> Self {
        Self {
            size: size.unwrap_or(u64::MAX),
            closed: size.is_some(),
            fin: false,
            pushes,
            fresh: false,
        }
    }

    /// The application writes `bytes` more.
    pub fn write(&mut self, bytes: u64) {
        assert!(!self.closed, "written after closing");
        self.size = self.size.checked_add(bytes).expect("a stream with an end");
    }

    /// The number of bytes from the offset `next` to the end of the data written so far.
    #[inline]
    pub fn left(&self, next: u64) -> u64 {
        self.size.saturating_sub(next)
    }

    /// The offset up to which there is something to send, the FIN included.
    #[inline]
    pub fn end(&self) -> u64 {
        self.size + u64::from(self.closed & self.fin)
    }

    /// Whether the FIN follows the offset `end`.
    #[inline]
    pub fn fin_follows(&self, end: u64) -> bool {
        end == self.size && self.closed && self.fin
    }

    /// Whether a segment of `len` bytes up to the offset `end` carries the FIN.
    #[inline]
    pub fn carries_fin(&self, end: u64, len: u32) -> bool {
        self.fin_follows(end) && (len == 0 || !self.fresh)
    }

    /// Whether `ack` acknowledges everything, the FIN included.
    #[inline]
    pub fn is_acked_by(&self, ack: u64) -> bool {
        self.closed && ack == self.size + u64::from(self.fin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fin_is_one_more_byte_after_the_data() {
        let mut stream = SendStream {
            fin: true,
            ..SendStream::new(Some(1000), false)
        };
        assert!(stream.fin_follows(1000) && !stream.fin_follows(999));
        assert!(stream.is_acked_by(1001) && !stream.is_acked_by(1000));
        assert!(stream.carries_fin(1000, 500) && stream.carries_fin(1000, 0));
        stream.fresh = true;
        assert!(!stream.carries_fin(1000, 500) && stream.carries_fin(1000, 0));
        stream.fin = false;
        assert!(stream.is_acked_by(1000) && !stream.fin_follows(1000));
    }

    #[test]
    fn data_that_the_application_has_not_closed_has_no_end() {
        let mut stream = SendStream {
            closed: false,
            fin: true,
            ..SendStream::new(Some(0), false)
        };
        stream.write(700);
        assert_eq!(
            [stream.left(0), stream.left(700), stream.left(701)],
            [700, 0, 0]
        );
        assert!(!stream.fin_follows(700) && !stream.is_acked_by(701));
    }
}
