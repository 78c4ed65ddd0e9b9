//! Amounts of bytes as people write them.

/// Reads `12`, `12 kB`, `1.5 MiB` and the like; `None` for anything else.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    (value.is_finite() && value < 9e18).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn amounts() {
        for (text, bytes) in [
            ("12", Some(12)),
            ("12 kB", Some(12_000)),
            ("1.5MiB", Some(3 << 19)),
            (" 2 GiB ", Some(2 << 30)),
            ("", None),
            ("GiB", None),
            ("-1", None),
            ("1 parsec", None),
            ("99999999999 TiB", None),
        ] {
            assert_eq!(parse(text), bytes, "{text}");
        }
    }
}
