//! Looks through RocksDB's log files for damage before RocksDB reads them.
//!
//! It says where the damage is, which RocksDB doesn't, and it keeps RocksDB from two traps. A
//! record whose type was turned into one of a recycled log makes its reader loop for ever, and a
//! stretch of zeros in the middle is passed over without a word, even in the strictest mode.
//!
//! A log is a row of blocks of 32 KiB. A fragment lies within a block: checksum (4 bytes), length
//! (2, little-endian), type (1), data. Fewer than 7 bytes at the end of a block are padding.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;

/// The types that only recycled logs have, and these are never recycled.
const RECYCLED_TYPES: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// Damage in a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    /// Where the first bad fragment begins.
    pub(super) offset: u64,
    /// What is wrong with it.
    pub(super) what: &'static str,
    /// Whether RocksDB must not read the file, since it wouldn't stop there.
    pub(super) is_trap: bool,
}

/// The first fault of a log file, or the first trap if there is one.
pub(super) fn first_fault(path: &Path) -> io::Result<Option<Fault>> {
    let mut file = File::open(path)?;
    let mut first: Option<Fault> = None;
    // Since where there were only zeros. At the end of a file they are a torn write.
    let mut zeros_from = None;
    let mut offset = 0;
    loop {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        file.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(first);
        }
        if zeros_from.is_some() && block.iter().any(|byte| *byte != 0) {
            return Ok(zeros_from.map(|offset| Fault { offset, what: ZEROS, is_trap: true }));
        }
        if let Some((at, what, is_trap)) = fault_in_block(&block) {
            let fault = Fault { offset: offset + at as u64, what, is_trap };
            if is_trap {
                return Ok(Some(fault));
            }
            if what == ZEROS {
                zeros_from.get_or_insert(fault.offset);
            }
            first.get_or_insert(fault);
        }
        // After a fault RocksDB goes on in the next block, and could meet a trap there.
        offset += block.len() as u64;
    }
}

const ZEROS: &str = "zeros in place of a record";

fn fault_in_block(block: &[u8]) -> Option<(usize, &'static str, bool)> {
    let mut at = 0;
    while at + HEADER_BYTES <= block.len() {
        let (header, rest) = block[at..].split_first_chunk::<HEADER_BYTES>()?;
        let [c0, c1, c2, c3, l0, l1, kind] = *header;
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        if kind == 0 && length == 0 {
            let is_trap = block[at..].iter().any(|byte| *byte != 0);
            return Some((at, ZEROS, is_trap));
        }
        if RECYCLED_TYPES.contains(&kind) {
            return Some((at, "a record of a type that is never written", true));
        }
        let Some(data) = rest.get(..length) else { return Some((at, "a record cut off", false)) };
        if masked(crc32c(&[&[kind], data])) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Some((at, "a record with a wrong checksum", false));
        }
        at += HEADER_BYTES + length;
    }
    let is_cut = at < block.len() && block.len() < BLOCK_BYTES;
    is_cut.then_some((at, "a record cut off", false))
}

/// RocksDB's disguise for a checksum that is stored beside the data it covers.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn crc32c(parts: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    !parts.iter().flat_map(|part| part.iter()).fold(!0, step)
}

const fn table() -> [u32; 256] {
    const REVERSED_POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ REVERSED_POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc32c() {
        assert_eq!(crc32c(&[b"1234", b"56789"]), 0xe306_9283);
    }

    fn fragment(kind: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = masked(crc32c(&[&[kind], data])).to_le_bytes().to_vec();
        bytes.extend(u16::try_from(data.len()).expect("a short fragment").to_le_bytes());
        bytes.push(kind);
        bytes.extend(data);
        bytes
    }

    fn fault_of(bytes: &[u8]) -> Option<(u64, bool)> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), bytes).expect("a temporary file can be written");
        let fault = first_fault(file.path()).expect("a temporary file can be read");
        fault.map(|fault| (fault.offset, fault.is_trap))
    }

    #[test]
    fn damage_is_found_where_it_is() {
        // A block that ends in 5 bytes of padding, and one that is cut off by the file's end.
        let mut whole = fragment(2, &vec![7; BLOCK_BYTES - HEADER_BYTES - 5]);
        whole.extend([0; 5]);
        whole.extend(fragment(4, b"end"));
        let second = BLOCK_BYTES as u64;
        assert_eq!(fault_of(&whole), None);
        assert_eq!(fault_of(&[]), None);
        for cut in BLOCK_BYTES + 1..whole.len() {
            assert_eq!(fault_of(&whole[..cut]), Some((second, false)), "cut at {cut}");
        }
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fault_of(&bytes)
        };
        assert_eq!(flipped(0), Some((0, false)));
        assert_eq!(flipped(100), Some((0, false)));
        assert_eq!(flipped(whole.len() - 1), Some((second, false)));
    }

    #[test]
    fn what_rocksdb_would_not_stop_at_is_a_trap() {
        let record = fragment(1, b"data");
        let at = record.len() as u64;
        let join = |parts: &[&[u8]]| parts.concat();
        assert_eq!(fault_of(&join(&[&record, &[0; 50_000]])), Some((at, false)), "a torn tail");
        assert_eq!(fault_of(&join(&[&record, &[0; 50], &record])), Some((at, true)));
        assert_eq!(fault_of(&join(&[&record, &[0; 50_000], &record])), Some((at, true)));
        assert_eq!(fault_of(&join(&[&record, &fragment(5, b"data")])), Some((at, true)));
        let mut damaged = vec![1; BLOCK_BYTES];
        damaged.extend(fragment(5, b"data"));
        assert_eq!(fault_of(&damaged), Some((BLOCK_BYTES as u64, true)), "the trap counts");
    }
}
