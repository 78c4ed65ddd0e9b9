//! Tells a secret from what only looks like one.

use super::rule::Candidate;
use super::stand_ins::{COMMON, STAND_INS, STAND_INS_OF_PASSWORDS};

/// Shannon entropy of the bytes, in bits per byte. Nothing has none.
pub(super) fn entropy(bytes: &[u8]) -> f32 {
    let mut counts = [0u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let total = bytes.len() as f32;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|&count| {
            let share = count as f32 / total;
            -share * share.log2()
        })
        .sum()
}

/// A token in a fixed format, unless it is a specimen from documentation.
pub(super) fn no_specimen(candidate: &Candidate<'_>) -> bool {
    !stands_in(candidate.secret)
}

/// Whether the value stands for a secret: a marked placeholder, one byte repeated, or counted up.
pub(super) fn stands_in(value: &[u8]) -> bool {
    STAND_INS.iter().any(|part| holds(value, part)) || monotonous(value)
}

/// A value after a prefix that others use too: no word, no specimen.
pub(super) fn unlike_words(candidate: &Candidate<'_>) -> bool {
    let value = candidate.secret;
    !wordy(value) && !uuid(value) && !stands_in(value) && !reference(value)
}

/// A token in place of a user in a URL.
pub(super) fn token_in_url(candidate: &Candidate<'_>) -> bool {
    !reserved(candidate.rest) && unlike_words(candidate)
}

/// A password that a tool was told, whatever its length.
pub(super) fn no_common_password(candidate: &Candidate<'_>) -> bool {
    let value = candidate.secret;
    !COMMON.iter().any(|common| value.eq_ignore_ascii_case(common)) && !stands_in(value) && !reference(value)
}

/// A value that only a key, a token or a secret has: long, of many different bytes, and no words.
pub(super) fn generated(candidate: &Candidate<'_>) -> bool {
    let value = candidate.secret;
    value.len() >= 16
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && entropy(value)
            >= if value.iter().all(u8::is_ascii_hexdigit) {
                2.9
            } else {
                3.4
            }
        && ends_well(candidate)
        && !reference(value)
        && !uuid(value)
        && !wordy(value)
        && (candidate.quoted || !named(value))
        && !stands_in(value)
        && !encrypted(value)
}

/// A value that somebody chose as a password. Shorter than generated ones, so the name before it must say so.
pub(super) fn chosen(candidate: &Candidate<'_>) -> bool {
    let value = candidate.secret;
    let digit = value.iter().any(u8::is_ascii_digit);
    let letter = value.iter().any(u8::is_ascii_alphabetic);
    let symbol = value
        .iter()
        .any(|byte| byte.is_ascii_punctuation() && !b"_-.,:;/\\()[]".contains(byte));
    value.len() >= 8
        && letter
        && (digit || candidate.quoted && symbol)
        && ends_well(candidate)
        && (candidate.quoted || !code(value))
        && !(candidate.listed() && wordy(value))
        && !reference(value)
        && !uuid(value)
        && !COMMON.iter().any(|common| value.eq_ignore_ascii_case(common))
        && !STAND_INS_OF_PASSWORDS
            .iter()
            .any(|part| holds(value, part) && value.len() < part.len() + 5)
        && !stands_in(value)
        && !encrypted(value)
}

/// A value behind a space, where words go on as they please.
pub(super) fn set_in_shell(candidate: &Candidate<'_>) -> bool {
    chosen(&Candidate {
        rest: &[],
        quoted: true,
        ..*candidate
    }) && candidate.secret.iter().any(u8::is_ascii_digit)
}

/// A password inside a URL, with whom it is for before it and where after it.
pub(super) fn in_url(candidate: &Candidate<'_>) -> bool {
    let password = candidate.secret;
    let user = candidate
        .matched
        .strip_prefix(b"://")
        .unwrap_or(candidate.matched);
    let user = user.split(|byte| *byte == b':').next().unwrap_or_default();
    // An image with tag and digest looks like user and password.
    !candidate.rest.starts_with(b"sha256:")
        && !candidate.rest.starts_with(b"sha512:")
        && candidate
            .rest
            .first()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[')
        && !reserved(candidate.rest)
        && !user.eq_ignore_ascii_case(password)
        && !COMMON.iter().any(|common| password.eq_ignore_ascii_case(common))
        && !password.iter().any(|byte| b"${}<>*|\\^`".contains(byte))
        && !password.starts_with(b"%s")
        && !password.starts_with(b"%(")
        && !stands_in(password)
}

/// Whether a URL goes on with a host that nobody has: names reserved for documentation and tests.
fn reserved(rest: &[u8]) -> bool {
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-' && *byte != b'.')
        .unwrap_or(rest.len());
    let host = rest[..end].to_ascii_lowercase();
    let domains: [&[u8]; 6] = [
        b"example.com",
        b"example.org",
        b"example.net",
        b"example",
        b"test",
        b"invalid",
    ];
    domains.iter().any(|domain| {
        host.strip_suffix(*domain)
            .is_some_and(|before| before.is_empty() && domain.contains(&b'.') || before.ends_with(b"."))
    })
}

/// Whether a value really ends where the match does. An unquoted one is code when a bracket or an operator follows, and
/// prose or code when another word does, unless it is glued to its name as in a shell.
fn ends_well(candidate: &Candidate<'_>) -> bool {
    let Some(next) = candidate.rest.first() else {
        return true;
    };
    if candidate.quoted {
        return !b"$({".contains(next);
    }
    let after = candidate
        .rest
        .iter()
        .find(|byte| **byte != b' ' && **byte != b'\t');
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;#&\"'`<>|}])\\/".contains(byte);
    ends(next) && (candidate.glued() && after != Some(&b'=') || after.is_none_or(ends))
}

/// Whether an unquoted value is an expression: a call, an index, or names with dots between them.
fn code(value: &[u8]) -> bool {
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let call = value
        .windows(2)
        .any(|pair| name(&pair[0]) && b"([".contains(&pair[1]));
    call || value.contains(&b'.') && wordy(value) && value.iter().all(|byte| name(byte) || *byte == b'.')
}

/// Whether the value names a place where the secret is, instead of the secret.
fn reference(value: &[u8]) -> bool {
    let looks = value.first().is_none_or(|first| b"$/~%.@{[(<&*!".contains(first));
    looks
        || holds(value, b"://")
        || holds(value, b"${")
        || holds(value, b"::")
        || value.len() > 3 && value[1..].starts_with(b":\\")
        || value.iter().filter(|byte| **byte == b'/').count() > 2 && wordy(value)
}

/// Eight hexadecimal digits, then three times four, then twelve: an identifier, not a secret.
fn uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether the value is made of words and numbers: no digit is followed by a letter, as it is in chance.
fn wordy(value: &[u8]) -> bool {
    let turns = value
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
        .count();
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    turns == 0 && digits * 4 <= value.len()
}

/// Whether the value is a name in a program: words in capitals and small letters, with a number in it at most.
fn named(value: &[u8]) -> bool {
    let turns = value
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
        .count();
    let constant = !value.iter().any(u8::is_ascii_lowercase);
    let (mut words, mut letters, mut run) = (0, 0, 0);
    for (at, byte) in value.iter().enumerate() {
        let letter = byte.is_ascii_alphabetic();
        letters += usize::from(letter);
        // A word goes on in small letters, or begins anew with a capital; a constant is all capitals.
        let goes_on = byte.is_ascii_lowercase() || constant && letter;
        if !goes_on && run >= 3 {
            words += run;
        }
        run = if goes_on { run + 1 } else { usize::from(letter) };
        if at + 1 == value.len() && run >= 3 {
            words += run;
        }
    }
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    turns <= 1 && digits * 5 <= value.len() * 2 && words * 10 >= letters * 7
}

/// Whether somebody encrypted the value already: it is meant to be kept this way.
fn encrypted(value: &[u8]) -> bool {
    let marks: [&[u8]; 6] = [
        b"ENC[",
        b"ENC(",
        b"vault:v1:",
        b"AQICAH",
        b"{cipher}",
        b"$ANSIBLE_VAULT",
    ];
    marks.iter().any(|mark| value.starts_with(mark))
}

/// A byte six times in a row, eight bytes that count up or down, or almost nothing but two bytes.
pub(super) fn monotonous(value: &[u8]) -> bool {
    let (mut same, mut up, mut down) = (1, 1, 1);
    for pair in value.windows(2) {
        let step = |by: i16| i16::from(pair[1]) - i16::from(pair[0]) == by;
        same = if step(0) { same + 1 } else { 1 };
        up = if step(1) { up + 1 } else { 1 };
        down = if step(-1) { down + 1 } else { 1 };
        if same >= 6 || up >= 8 || down >= 8 {
            return true;
        }
    }
    false
}

/// Whether `part` stands in `value`, without regard to case. Both are short.
fn holds(value: &[u8], part: &[u8]) -> bool {
    value
        .windows(part.len())
        .any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(secret: &str, rest: &str, quoted: bool, judge: fn(&Candidate<'_>) -> bool) -> bool {
        judge(&Candidate {
            secret: secret.as_bytes(),
            matched: secret.as_bytes(),
            rest: rest.as_bytes(),
            quoted,
        })
    }

    #[test]
    fn entropy_counts_bits() {
        assert_eq!(entropy(b""), 0.0);
        assert_eq!(entropy(b"aaaa"), 0.0);
        assert_eq!(entropy(b"abab"), 1.0);
        assert_eq!(entropy(b"abcdefgh"), 3.0);
    }

    #[test]
    fn generated_values_are_no_words() {
        for secret in [
            "q8Zr1LwT0vKx5Bn7Yd3P",
            "9f86d081884c7d659a2feaa0",
            "a1-b2_c3.d4e5f6g7h8",
        ] {
            assert!(value(secret, "\n", false, generated), "{secret}");
        }
        for word in [
            "keyword.control.import2",
            "meta.function-call.arguments",
            "request.headers.authorization1",
            "123e4567-e89b-12d3-a456-426614174000",
            "${MY_TOKEN_FROM_ENV_1}",
            "/run/secrets/token_4f2a81",
            "https://example.org/1a2b3c4d",
            "xxxxxxxxxxxxxxxx1a2b",
            "ENC[AES256_GCM,data:8f7e6d]",
            "a1a1a1a1a1a1a1a1a1a1",
        ] {
            assert!(!value(word, "\n", true, generated), "{word}");
        }
        assert!(!value("q8Zr1LwT0vKx5Bn7Yd3P", "(", false, generated), "a call");
    }

    #[test]
    fn chosen_passwords_are_none_of_the_usual_ones() {
        for secret in ["Tr0ub4dor&3", "summer-of-69", "k9!kfWpq"] {
            assert!(value(secret, "\n", false, chosen), "{secret}");
        }
        for word in [
            "changeme1",
            "password123",
            "string",
            "$PASSWORD1",
            "Passw0rd",
            "aaaaaaaa1",
            "pam_unix2(",
            "files",
        ] {
            assert!(!value(word, "\n", false, chosen), "{word}");
        }
    }

    #[test]
    fn counting_is_no_secret() {
        assert!(monotonous(b"xx12345678"));
        assert!(monotonous(b"hgfedcba"));
        assert!(monotonous(b"q0000000"));
        assert!(!monotonous(b"1234x5678"));
    }
}
