//! Whether bytes are worth compressing.

/// How many bytes are looked at, in pieces spread over the whole.
const SAMPLE: usize = 4096;
const PIECES: usize = 8;
/// Bytes with more bits each than this are as good as random: compressing them takes much and gives nothing.
const MOST_BITS: f64 = 7.8;

/// False for what a sample shows to be random or compressed already. Looks at 4 KiB, however many there are.
pub fn compresses(bytes: &[u8]) -> bool {
    if bytes.len() < 1024 {
        return true;
    }
    let mut counts = [0u32; 256];
    let piece = (SAMPLE / PIECES).min(bytes.len() / PIECES);
    let step = bytes.len() / PIECES;
    for number in 0..PIECES {
        let start = number * step;
        for byte in &bytes[start..start + piece] {
            counts[usize::from(*byte)] += 1;
        }
    }
    let total = f64::from((piece * PIECES) as u32);
    // Few samples look less random than they are.
    let shortfall = 255.0 / (2.0 * std::f64::consts::LN_2 * total);
    bits(&counts, total) + shortfall < MOST_BITS
}

/// Shannon's entropy in bits a byte.
fn bits(counts: &[u32; 256], total: f64) -> f64 {
    let sum: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) * f64::from(*count).log2())
        .sum();
    total.log2() - sum / total
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingot_testdata::random::Numbers;

    #[test]
    fn text_compresses_and_noise_does_not() {
        let mut numbers = Numbers::new(1);
        for length in [1024, 5000, 65_536, 262_144] {
            let noise: Vec<u8> = (0..length).map(|_| numbers.draw() as u8).collect();
            assert!(!compresses(&noise), "{length}");
            let text: Vec<u8> = (0..length)
                .map(|_| b"etaoin shrdlu\n"[numbers.below(14)])
                .collect();
            assert!(compresses(&text), "{length}");
            assert!(compresses(&vec![0; length]));
            // Six bits a byte, as base64 has.
            let base64: Vec<u8> = noise.iter().map(|byte| 48 + (byte & 63)).collect();
            assert!(compresses(&base64), "{length}");
        }
        assert!(compresses(b""));
    }
}
