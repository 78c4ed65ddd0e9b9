//! Clouds and hosting.

use super::super::rule::{Candidate, Rule};
use super::{set, tail};

pub(super) const RULES: &[Rule] = &[
    Rule::token(
        "aws-access-key",
        "AWS access key id",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        r"(?:AKIA|ASIA|ABIA|ACCA)([A-Z2-7]{16})",
    )
    .entropy(2.5),
    Rule::named(
        "aws-secret-key",
        "AWS secret access key",
        &[
            "secret_access_key",
            "secretaccesskey",
            "secret-access-key",
            "aws_secret",
            "aws-secret",
            "awssecret",
        ],
        concat!(
            r"(?:secret[_-]?access[_-]?key|aws[_-]?secret(?:[_-]?key)?)",
            set!(),
            r"([a-z0-9/+]{40})"
        ),
    )
    .entropy(3.8),
    Rule::token(
        "aws-bedrock-key",
        "Amazon Bedrock key",
        &["ABSKQmVkcm9ja"],
        r"ABSKQmVkcm9ja([A-Za-z0-9+/=]{90,})",
    ),
    Rule::token(
        "google-api-key",
        "Google API key",
        &["AIza"],
        r"AIza([A-Za-z0-9_-]{35})",
    ),
    Rule::token(
        "google-oauth-secret",
        "Google OAuth client secret",
        &["GOCSPX-"],
        r"GOCSPX-([A-Za-z0-9_-]{28})",
    ),
    Rule::token(
        "google-access-token",
        "Google OAuth access token",
        &["ya29."],
        r"ya29\.([A-Za-z0-9_-]{30,})",
    )
    .entropy(3.5)
    .open(),
    Rule::token(
        "google-refresh-token",
        "Google OAuth refresh token",
        &["1//0"],
        r"1//0([A-Za-z0-9_-]{60,})",
    )
    .entropy(3.8),
    Rule::named(
        "azure-storage-key",
        "Azure storage or service key",
        &["AccountKey", "SharedAccessKey", "account_key"],
        concat!(
            r"(?:account_?key|sharedaccesskey)",
            set!(),
            r"([a-z0-9+/]{86}==|[a-z0-9+/]{43}=)"
        ),
    )
    .entropy(3.5),
    Rule::token(
        "azure-client-secret",
        "Azure client secret",
        &["7Q~", "8Q~"],
        r"[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}",
    )
    .follow(0)
    .before(3)
    .entropy(3.5),
    Rule::named(
        "azure-shared-access-signature",
        "Azure shared access signature",
        &["&sig=", "?sig="],
        r"[?&]sig=([a-z0-9%+/_-]{40,90}(?:%3d|=))",
    )
    .entropy(3.8),
    Rule::token(
        "azure-devops-token",
        "Azure DevOps token",
        &["AZDO"],
        r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}",
    )
    .follow(4)
    .before(76)
    .entropy(3.5),
    Rule::token(
        "alibaba-access-key",
        "Alibaba Cloud access key id",
        &["LTAI"],
        r"LTAI([A-Za-z0-9]{12,24})",
    )
    .entropy(3.3)
    .accept(mixed),
    Rule::token(
        "digitalocean-token",
        "DigitalOcean token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        r"do[por]_v1_([a-f0-9]{64})",
    ),
    Rule::token(
        "heroku-key",
        "Heroku key",
        &["HRKU-"],
        r"HRKU-([A-Za-z0-9_-]{36,64})",
    ),
    Rule::named(
        "heroku-uuid",
        "Heroku key",
        &["heroku"],
        concat!(
            r"heroku",
            tail!(),
            set!(),
            r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
        ),
    )
    .accept(secret_name),
    Rule::named(
        "cloudflare-key",
        "Cloudflare token or key",
        &["cloudflare", "cf_api", "cf-api"],
        concat!(
            r"(?:cloudflare|cf[_-]api)",
            tail!(),
            set!(),
            r"([a-z0-9_-]{40}|[0-9a-f]{37})"
        ),
    )
    .entropy(3.4)
    .accept(secret_name),
    Rule::token(
        "cloudflare-origin-key",
        "Cloudflare origin CA key",
        &["v1.0-"],
        r"v1\.0-([a-f0-9]{24}-[a-f0-9]{146})",
    ),
    Rule::token(
        "databricks-token",
        "Databricks token",
        &["dapi"],
        r"dapi([a-f0-9]{32}(?:-[0-9])?)",
    ),
    Rule::token(
        "fly-token",
        "Fly.io token",
        &["fo1_", "fm1a_", "fm1r_", "fm2_"],
        r"(?:fo1_([A-Za-z0-9_-]{43})|fm(?:1[ar]|2)_([A-Za-z0-9+/=]{100,}))",
    ),
    Rule::token(
        "vault-token",
        "HashiCorp Vault token",
        &["hvs.", "hvb.", "hvr."],
        r"hv[sbr]\.([A-Za-z0-9_-]{90,})",
    ),
    Rule::token(
        "terraform-token",
        "Terraform Cloud token",
        &[".atlasv1."],
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}",
    )
    .before(14),
    Rule::token("pulumi-token", "Pulumi token", &["pul-"], r"pul-([a-f0-9]{40})"),
    Rule::token(
        "doppler-token",
        "Doppler token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.((?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44})",
    ),
    Rule::token(
        "planetscale-token",
        "PlanetScale token",
        &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"],
        r"pscale_(?:tkn|pw|oauth)_([A-Za-z0-9_=.-]{32,64})",
    ),
    Rule::token(
        "supabase-token",
        "Supabase token",
        &["sbp_", "sb_secret_"],
        r"(?:sbp_([a-f0-9]{40})|sb_secret_([A-Za-z0-9_-]{22,60}))",
    ),
    Rule::token(
        "netlify-token",
        "Netlify token",
        &["nfp_", "nfc_", "nfo_", "nfu_"],
        r"nf[pcou]_([A-Za-z0-9]{36})",
    ),
    Rule::token(
        "tailscale-key",
        "Tailscale key",
        &["tskey-"],
        r"tskey-(?:auth|api|client|scim|webhook)-([A-Za-z0-9]{8,20}-[A-Za-z0-9]{20,40})",
    ),
    Rule::token(
        "openshift-token",
        "OpenShift token",
        &["sha256~"],
        r"sha256~([A-Za-z0-9_-]{43})",
    ),
    Rule::token(
        "scaleway-key",
        "Scaleway access key id",
        &["SCW"],
        r"SCW([A-Z0-9]{17})",
    )
    .entropy(3.3)
    .accept(mixed),
];

/// Of capitals, small letters and digits at least two: words and constants are no keys.
fn mixed(candidate: &Candidate<'_>) -> bool {
    let kinds: [fn(&u8) -> bool; 3] = [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit];
    let kinds = kinds
        .iter()
        .filter(|kind| candidate.secret.iter().any(*kind))
        .count();
    kinds >= 2 && !super::super::judge::stands_in(candidate.secret)
}

/// The name says that the value is a key or a token, not an account or a zone.
fn secret_name(candidate: &Candidate<'_>) -> bool {
    let name = candidate.name().to_ascii_lowercase();
    let says = |word: &[u8]| name.windows(word.len()).any(|window| window == word);
    (says(b"key") || says(b"token") || says(b"secret"))
        && candidate.secret.iter().any(u8::is_ascii_digit)
        && !super::super::judge::stands_in(candidate.secret)
}
