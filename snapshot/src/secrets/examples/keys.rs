//! Private keys.

use super::{BASE32, BECH32, Example, MIXED, base64, example, noise, pem};

pub(super) fn all() -> Vec<Example> {
    let key = |kind: &str| format!("{kind}PRIVATE KEY");
    let dashes = "-".repeat(5);
    vec![
        example(
            "private-key",
            [
                pem(&key(""), "\n", ""),
                pem(&key("RSA "), "\r\n", ""),
                pem(&key("EC "), "\n", "    "),
                pem(&key("OPENSSH "), "\\n", ""),
                pem(&key("ENCRYPTED "), "\n", "# "),
                format!(
                    "{} BLOCK{dashes}\n\n{}",
                    pem(&key("PGP "), "\n", "")
                        .split(&dashes)
                        .take(2)
                        .collect::<Vec<_>>()
                        .join(&dashes),
                    noise(MIXED, 64)
                ),
                pem(&key("RSA "), "\n", "").replacen(
                    "\n",
                    "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0102030405060708\n\n",
                    1,
                ),
                format!(
                    "{{\"type\": \"service_account\", \"private_key\": \"{}\\n\"}}",
                    pem(&key(""), "\\n", "")
                ),
                pem(&key("DSA "), "\" +\n    \"", ""),
            ],
            [
                pem("CERTIFICATE", "\n", ""),
                pem("PUBLIC KEY", "\n", ""),
                pem("PGP MESSAGE", "\n", ""),
                pem("AGE ENCRYPTED FILE", "\n", ""),
                format!(
                    "if text.starts_with(\"{dashes}BEGIN {}{dashes}\") {{ return parse(text); }}",
                    key("")
                ),
                format!(
                    "{dashes}BEGIN {}{dashes}\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
                    key("RSA ")
                ),
                format!("{dashes}BEGIN {}{dashes}\n...\n{dashes}END", key("RSA ")),
                format!(
                    "{dashes}BEGIN {}{dashes} and {dashes}END {}{dashes} surround the encoded bytes",
                    key(""),
                    key("")
                ),
            ],
        ),
        example(
            "private-key-base64",
            [data_encoding::BASE64.encode(pem(&key("EC "), "\n", "").as_bytes())],
            [data_encoding::BASE64.encode(pem("CERTIFICATE", "\n", "").as_bytes())],
        ),
        example(
            "putty-private-key",
            [format!(
                "Private-{}: 2\n{}\n{}\n",
                "Lines",
                noise(MIXED, 64),
                noise(MIXED, 40)
            )],
            [
                format!("Public-{}: 2\n{}\n", "Lines", noise(MIXED, 64)),
                "Private-Lines: 14\n".to_owned(),
            ],
        ),
        example(
            "age-identity",
            [
                format!("AGE-SECRET-{}1{}", "KEY-", noise(BECH32, 58)),
                format!("age-secret-{}1{}", "key-", noise(BECH32, 58).to_lowercase()),
            ],
            [
                format!("age1{}", noise(BECH32, 58).to_lowercase()),
                "AGE-SECRET-KEY-1...".to_owned(),
            ],
        ),
        example(
            "device-key",
            [
                format!("\"signing_{}_key\": \"{}\"", "private", base64(32)),
                format!("  \"wrapping_{}_key\":\"{}\"", "private", base64(32)),
            ],
            [
                format!("\"signing_public_key\": \"{}\"", base64(32)),
                "signing_private_key: String,".to_owned(),
            ],
        ),
        example(
            "wireguard-key",
            [
                format!("[Interface]\nPrivate{} = {}A=\n", "Key", noise(MIXED, 42)),
                format!("Preshared{}={}w=", "Key", noise(MIXED, 42)),
            ],
            [
                format!("PublicKey = {}A=", noise(MIXED, 42)),
                format!("PrivateKey = {}=", "A".repeat(43)),
            ],
        ),
        example(
            "kubernetes-client-key",
            [format!("    client-{}-data: {}", "key", base64(300))],
            [format!("    client-certificate-data: {}", base64(300))],
        ),
        example(
            "jwk-private",
            [format!(
                "{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"{}\":\"{}\"}}",
                "d",
                noise(MIXED, 43)
            )],
            [
                format!("{{\"kty\":\"OKP\",\"x\":\"{}\"}}", noise(MIXED, 43)),
                "{\"d\":\"M12 2 C6.5 2 2 6.5 2 12 s4.5 10 10 10 10 4.5 10 10z\"}".to_owned(),
            ],
        ),
        example(
            "otp-secret",
            [format!(
                "otpauth:{}totp/Mail:me?secret={}&issuer=Mail",
                "//",
                noise(BASE32, 32)
            )],
            [
                "otpauth://totp/Mail:me?secret=<secret>&issuer=Mail",
                "otpauth://totp/{label}?secret={secret}",
            ],
        ),
        example(
            "ansible-password",
            [format!("host ansible_{}=k9{}", "become_pass", noise(MIXED, 10))],
            [
                "host ansible_become_pass={{ vault_become }}",
                "ansible_ssh_pass=changeme",
                "ansible_user=deploy99",
            ],
        ),
    ]
}
