//! Files that are secret because of where they are.

use super::RuleInfo;
use super::finding::{self, Finding};

/// A place. Patterns are compared part by part with the end of the path, without regard to case: `*` stands for any
/// bytes inside a part, `**` for any number of parts.
struct PathRule {
    name: &'static str,
    what: &'static str,
    places: &'static [&'static str],
    /// What is no secret in these places.
    except: &'static [&'static str],
}

const RULES: &[PathRule] = &[
    PathRule {
        name: "path-device-key",
        what: "device key of an encrypted remote",
        places: &["*.key.json"],
        except: &[],
    },
    PathRule {
        name: "path-ssh-key",
        what: "private SSH key",
        places: &[
            ".ssh/id_*",
            ".ssh/identity",
            ".ssh/*.pem",
            ".ssh/*.key",
            ".ssh/*_rsa",
            ".ssh/*_dsa",
            ".ssh/*_ecdsa",
            ".ssh/*_ed25519",
            "ssh_host_*_key",
            "*.ppk",
            ".vagrant.d/insecure_private_keys/*",
        ],
        except: &["*.pub", "*-cert.pub"],
    },
    PathRule {
        name: "path-pgp-key",
        what: "private PGP key",
        places: &[
            ".gnupg/private-keys-v1.d/**",
            "secring.gpg",
            "private-keys-v1.d/*.key",
        ],
        except: &[],
    },
    PathRule {
        name: "path-key-store",
        what: "store of keys or passwords",
        places: &[
            "*.p12",
            "*.pfx",
            "*.jks",
            "*.keystore",
            "*.kdbx",
            "*.kdb",
            "*.keychain",
            "*.keychain-db",
            "*.kwallet",
            "kwalletd/*.kwl",
            "keyrings/*.keyring",
            "keyrings/user.keystore",
            "Library/Keychains/**",
            "*.agilekeychain/**",
            "*.opvault/**",
            "Bitwarden CLI/data.json",
            "*.keytab",
            "krb5cc_*",
            "minisign.key",
            ".minisign/*.key",
            "borg/keys/**",
            ".step/secrets/**",
            "pki/private/**",
            ".android/adbkey",
            "*.wallet",
            "wallet.dat",
            ".electrum/wallets/**",
            ".ethereum/keystore/**",
            "solana/id.json",
            "TelegramDesktop/tdata/**",
            "Signal/config.json",
        ],
        except: &["debug.keystore", "gpg-agent.keystore"],
    },
    PathRule {
        name: "path-cloud-credentials",
        what: "credentials of a cloud tool",
        places: &[
            ".aws/credentials",
            ".aws/cli/cache/**",
            ".aws/sso/cache/**",
            ".aws/login/cache/**",
            ".boto",
            ".azure/accessTokens.json",
            ".azure/msal_token_cache.*",
            ".azure/service_principal_entries.*",
            ".azure/msal_http_cache.bin",
            "gcloud/credentials.db",
            "gcloud/access_tokens.db",
            "gcloud/application_default_credentials.json",
            "gcloud/legacy_credentials/**",
            ".oci/*.pem",
            ".oci/sessions/**",
            ".bluemix/config.json",
            "doctl/config.yaml",
            ".kube/config",
            ".kube/cache/oidc-login/**",
            "k3s.yaml",
            ".terraform.d/credentials.tfrc.json",
            ".vault-token",
            ".fly/config.yml",
            ".databrickscfg",
            ".s3cfg",
            ".passwd-s3fs",
            "rclone/rclone.conf",
            ".pulumi/credentials.json",
            ".config/openstack/clouds.yaml",
            ".config/scw/config.yaml",
            ".config/hcloud/cli.toml",
            ".config/linode-cli",
        ],
        except: &[],
    },
    PathRule {
        name: "path-login",
        what: "logins of a tool",
        places: &[
            ".netrc",
            "_netrc",
            ".authinfo",
            ".pgpass",
            "pgpass.conf",
            ".mylogin.cnf",
            ".git-credentials",
            "git/credentials",
            ".cargo/credentials",
            ".cargo/credentials.toml",
            ".gem/credentials",
            "gem/credentials",
            ".pypirc",
            "pypoetry/auth.toml",
            ".composer/auth.json",
            "composer/auth.json",
            ".m2/settings-security.xml",
            ".htpasswd",
            ".config/hub",
            ".smbcredentials",
            ".vnc/passwd",
            ".purple/accounts.xml",
            "filezilla/sitemanager.xml",
            "filezilla/recentservers.xml",
            ".claude/.credentials.json",
            ".codex/auth.json",
            "github-copilot/hosts.json",
            "github-copilot/apps.json",
            ".msmtp-password",
            ".offlineimap-password",
            "system-connections/*",
            "etc/shadow",
            "etc/shadow-",
            "etc/gshadow",
            "etc/gshadow-",
            "etc/security/opasswd",
            ".google_authenticator",
            ".Xauthority",
            ".ICEauthority",
            ".erlang.cookie",
            "spotify/Users/*/ad-state-storage.bnk",
        ],
        except: &[],
    },
    PathRule {
        name: "path-browser-profile",
        what: "logins or sessions of a browser",
        places: &[
            "logins.json",
            "logins-backup.json",
            "key3.db",
            "key4.db",
            "signons.sqlite",
            "cookies.sqlite",
            "cookies.sqlite-wal",
            "sessionstore.jsonlz4",
            "sessionstore-backups/*.jsonlz4*",
            "Login Data",
            "Login Data For Account",
            "Login Data-journal",
            "Web Data",
            "Cookies",
            "Cookies-journal",
            "Safe Browsing Cookies",
            "Local Storage/leveldb/**",
            "Session Storage/*.log",
            "Session Storage/*.ldb",
            "Library/Cookies/**",
            "Cookies.binarycookies",
            "Extension Cookies",
        ],
        except: &["Local Storage/leveldb/LOCK"],
    },
];

/// The finding about a path, if there is one.
pub(super) fn find(path: &[u8]) -> Option<Finding> {
    let parts: Vec<&[u8]> = path
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .collect();
    let rule = RULES.iter().find(|rule| {
        rule.places.iter().any(|place| ends_in(&parts, place))
            && !rule.except.iter().any(|place| ends_in(&parts, place))
    })?;
    let fingerprint = finding::fingerprint(rule.name, path);
    Some(Finding {
        rule: rule.name,
        what: rule.what,
        line: 0,
        redacted: "(the whole file)".to_owned(),
        how_to_allow: finding::how_to_allow(path, None, &fingerprint),
        fingerprint,
    })
}

/// The rules, for listing them.
pub(super) fn rules() -> impl Iterator<Item = RuleInfo> {
    RULES.iter().map(|rule| RuleInfo {
        name: rule.name,
        what: rule.what,
        path: true,
        binary: true,
    })
}

/// The words of all rules, for knowing when one changes.
#[cfg(test)]
pub(super) fn content() -> impl Iterator<Item = &'static str> {
    RULES.iter().flat_map(|rule| {
        [rule.name]
            .iter()
            .chain(rule.places)
            .chain(rule.except)
            .copied()
            .collect::<Vec<_>>()
    })
}

/// Whether the path ends in the place.
fn ends_in(path: &[&[u8]], place: &str) -> bool {
    match place.strip_suffix("/**") {
        // A folder with everything in it: its name must be followed by something.
        Some(folder) => (1..path.len()).any(|end| ends_in(&path[..end], folder)),
        None => {
            let mut parts = place.rsplit('/');
            let mut path = path.iter().rev();
            parts.all(|part| path.next().is_some_and(|name| same(name, part.as_bytes())))
        }
    }
}

/// Whether a name fits a pattern with `*`. Takes time in proportion to the product of the lengths at most.
fn same(name: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut within) = (0, 0);
    // Where the last star stands and how far the name went when it was met: the only place to go back to.
    let mut star = None;
    while at < name.len() {
        match pattern.get(within) {
            Some(b'*') => {
                star = Some((within, at));
                within += 1;
            }
            Some(byte) if byte.eq_ignore_ascii_case(&name[at]) => {
                at += 1;
                within += 1;
            }
            _ => match &mut star {
                Some((place, reached)) => {
                    *reached += 1;
                    at = *reached;
                    within = *place + 1;
                }
                None => return false,
            },
        }
    }
    pattern[within..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_inside_a_part() {
        assert!(same(b"id_rsa", b"id_*"));
        assert!(same(b"id_", b"id_*"));
        assert!(same(b"a.key.json", b"*.key.json"));
        assert!(same(b"a.key.json.key.json", b"*.key.json"));
        assert!(!same(b"a.key.jso", b"*.key.json"));
        assert!(!same(b"xid_rsa", b"id_*"));
        assert!(same(b"ssh_host_ed25519_key", b"ssh_host_*_key"));
    }

    #[test]
    fn secret_places_are_found() {
        for path in [
            ".ssh/id_ed25519",
            "home/.ssh/id_rsa",
            ".SSH/ID_RSA",
            ".ssh/id_work.old",
            ".aws/credentials",
            ".aws/sso/cache/0a1b.json",
            ".gnupg/private-keys-v1.d/AB.key",
            ".netrc",
            ".pgpass",
            ".kube/config",
            ".config/ingot/keys/laptop.key.json",
            ".config/google-chrome/Default/Login Data",
            "vault.kdbx",
            ".config/google-chrome/Default/Network/Cookies",
            ".mozilla/firefox/x.default/key4.db",
            ".local/share/keyrings/login.keyring",
            ".config/gcloud/legacy_credentials/me/adc.json",
            ".cargo/credentials.toml",
            ".config/discord/Local Storage/leveldb/000003.log",
            "/etc/shadow",
            ".azure/msal_token_cache.json",
        ] {
            let finding = find(path.as_bytes());
            assert!(finding.is_some(), "{path}");
            assert_eq!(finding.map(|finding| finding.line), Some(0));
        }
    }

    #[test]
    fn their_neighbours_are_not() {
        for path in [
            ".ssh/id_ed25519.pub",
            ".ssh/config",
            ".ssh/known_hosts",
            ".ssh/authorized_keys",
            ".aws/config",
            "id_rsa",
            "src/credentials",
            ".gnupg/pubring.kbx",
            ".gnupg/gpg.conf",
            ".config/kube/config.txt",
            "key.json",
            "docs/cookies",
            "Cookies.txt",
            ".android/debug.keystore",
            ".aws/sso/cache",
            ".password-store/mail.gpg",
            "",
            "/",
            "system-connections",
            ".cargo/config.toml",
            "\u{fffd}",
        ] {
            // Names are compared without regard to case, and a folder of this name is no file.
            let expected = path == "docs/cookies";
            assert_eq!(find(path.as_bytes()).is_some(), expected, "{path}");
        }
    }

    #[test]
    fn names_that_are_no_text_are_compared_too() {
        assert!(find(b"\xff/.ssh/id_\xfe").is_some());
    }
}
