//! Chat, mail, payment and other services.

use super::super::judge;
use super::super::rule::{Candidate, Rule};
use super::{set, tail};

pub(super) const RULES: &[Rule] = &[
    Rule::token(
        "slack-token",
        "Slack token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxe.", "xoxc-", "xoxd-"],
        r"xox(?:e\.xox[bp]|[abcdeoprs])-([A-Za-z0-9%/+=-]{24,})",
    )
    .accept(digits),
    Rule::token("slack-app-token", "Slack app token", &["xapp-"], r"xapp-([0-9]-[A-Z0-9]{8,14}-[0-9]{8,16}-[a-f0-9]{40,70})"),
    Rule::token(
        "slack-webhook",
        "Slack webhook",
        &["hooks.slack.com/"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_]{40,80})",
    )
    .inside()
    .accept(digits),
    Rule::token(
        "discord-webhook",
        "Discord webhook",
        &["/api/webhooks/"],
        r"/api/webhooks/[0-9]{17,20}/([A-Za-z0-9_-]{60,80})",
    )
    .inside()
    .entropy(3.8),
    Rule::named(
        "discord-token",
        "Discord bot token",
        &["discord", "bot_token", "bottoken"],
        concat!(r"(?:discord|bot_?token)", tail!(), set!(), r"(?:Bot )?([mno][a-z0-9_-]{22,28}\.[a-z0-9_-]{6}\.[a-z0-9_-]{27,40})"),
    )
    .entropy(3.8),
    Rule::token(
        "telegram-token",
        "Telegram bot token",
        &[":AA"],
        r"[0-9]{8,10}(:AA[A-Za-z0-9_-]{32,33})",
    )
    .before(10)
    .inside()
    .entropy(3.5),
    Rule::token(
        "stripe-key",
        "Stripe key",
        &["sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"],
        r"(?:[sr]k_(?:live|test)_([A-Za-z0-9]{24,})|whsec_([A-Za-z0-9+/=]{32,64}))",
    )
    .accept(digits),
    Rule::named(
        "twilio-token",
        "Twilio token or secret",
        &["twilio"],
        concat!(r"twilio", tail!(), set!(), r"([0-9a-f]{32}|[a-z0-9]{32})"),
    )
    .accept(named_secret),
    Rule::token(
        "sendgrid-key",
        "SendGrid key",
        &["SG."],
        r"SG\.([A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})",
    )
    .entropy(3.8),
    Rule::named(
        "mailgun-key",
        "Mailgun key",
        &["mailgun"],
        concat!(r"mailgun", tail!(), set!(), r"(?:api:)?((?:key-)?[0-9a-f]{32}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})"),
    )
    .accept(named_secret),
    Rule::token("mailgun-private-key", "Mailgun key", &["key-"], r"key-([0-9a-f]{32})").entropy(3.3),
    Rule::named(
        "mailchimp-key",
        "Mailchimp key",
        &["mailchimp", "mandrill"],
        concat!(r"(?:mailchimp|mandrill)", tail!(), set!(), r"([0-9a-f]{32}-us[0-9]{1,2}|[a-z0-9_-]{22})"),
    )
    .entropy(3.3)
    .accept(named_secret),
    Rule::token("brevo-key", "Brevo key", &["xkeysib-", "xsmtpsib-"], r"x(?:key|smtp)sib-([a-f0-9]{64}-[A-Za-z0-9]{16})"),
    Rule::named(
        "resend-key",
        "Resend key",
        &["resend"],
        concat!(r"resend", tail!(), set!(), r"(re_[a-z0-9]{8}_[a-z0-9]{24})"),
    )
    .entropy(3.5),
    Rule::token(
        "shopify-token",
        "Shopify token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"shp(?:at|ca|pa|ss)_([a-fA-F0-9]{32})",
    ),
    Rule::token("square-token", "Square token", &["sq0atp-", "sq0csp-", "EAAA"], r"(?:sq0atp-([A-Za-z0-9_-]{22})|sq0csp-([A-Za-z0-9_-]{43})|EAAA([A-Za-z0-9_-]{60}))").entropy(3.5),
    Rule::token("braintree-token", "Braintree token", &["access_token$production$"], r"access_token\$production\$([a-z0-9]{16}\$[a-f0-9]{32})"),
    Rule::token("razorpay-key", "Razorpay key", &["rzp_live_"], r"rzp_live_([A-Za-z0-9]{14})").entropy(2.8),
    Rule::token("shippo-token", "Shippo token", &["shippo_live_", "shippo_test_"], r"shippo_(?:live|test)_([a-fA-F0-9]{40})"),
    Rule::token("facebook-token", "Facebook token", &["EAAC", "EAAM", "EAAB"], r"EAA[CMB]([A-Za-z0-9]{100,})").entropy(3.8),
    Rule::token("linear-key", "Linear key", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_([A-Za-z0-9]{40,64})"),
    Rule::token("notion-token", "Notion token", &["ntn_", "secret_"], r"(?:ntn_([0-9]{11}[A-Za-z0-9]{35})|secret_([A-Za-z0-9]{43}))").entropy(3.8).accept(digits),
    Rule::token("figma-token", "Figma token", &["figd_"], r"figd_([A-Za-z0-9_-]{38,50})"),
    Rule::named(
        "airtable-token",
        "Airtable token",
        &["airtable"],
        concat!(r"airtable", tail!(), set!(), r"(pat[a-z0-9]{14}\.[a-f0-9]{64}|key[a-z0-9]{14})"),
    )
    .entropy(3.0),
    Rule::token("grafana-token", "Grafana token", &["glsa_", "glc_"], r"(?:glsa_([A-Za-z0-9]{32}_[A-Fa-f0-9]{8})|glc_([A-Za-z0-9+/]{32,}={0,2}))"),
    Rule::token("sentry-token", "Sentry token", &["sntrys_", "sntryu_"], r"sntry(?:u_([a-f0-9]{64})|s_(eyJ[A-Za-z0-9+/=_-]{60,}))"),
    Rule::token("postman-key", "Postman key", &["PMAK-"], r"PMAK-([a-f0-9]{24}-[a-f0-9]{34})"),
    Rule::token("new-relic-key", "New Relic key", &["NRAK-", "NRII-"], r"NR(?:AK-([A-Z0-9]{27})|II-([A-Za-z0-9_-]{32}))"),
    Rule::named(
        "datadog-key",
        "Datadog key",
        &["datadog", "dd_api", "dd_app", "dd-api"],
        concat!(r"(?:datadog|dd[_-](?:api|app))", tail!(), set!(), r"([0-9a-f]{40}|[0-9a-f]{32})"),
    )
    .accept(named_secret),
    Rule::token("dynatrace-token", "Dynatrace token", &["dt0c01.", "dt0s01."], r"dt0[cs]01\.([A-Z0-9]{24}\.[A-Z0-9]{64})"),
    Rule::token("posthog-key", "PostHog personal key", &["phx_"], r"phx_([A-Za-z0-9]{43,50})"),
    Rule::token("easypost-key", "EasyPost key", &["EZAK", "EZTK"], r"EZ[AT]K([A-Za-z0-9]{54})"),
    Rule::token("frame-io-token", "Frame.io or Duffel token", &["fio-u-", "duffel_live_"], r"(?:fio-u-([A-Za-z0-9_=-]{64})|duffel_live_([A-Za-z0-9_=-]{43}))"),
    Rule::token("1password-token", "1Password service account token", &["ops_eyJ"], r"ops_(eyJ[A-Za-z0-9+/]{250,})").reach(1000),
    Rule::token("1password-secret-key", "1Password secret key", &["A3-"], r"A3-([A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5})").entropy(3.6).accept(digits),
    Rule::token("teams-webhook", "Microsoft Teams webhook", &[".webhook.office.com/"], r"\.webhook\.office\.com/webhookb2/([a-f0-9-]{36}@[a-f0-9-]{36}/IncomingWebhook/[a-f0-9]{32}/[a-f0-9-]{36})").inside(),
    Rule::named(
        "service-key",
        "key of a service that has no form of its own",
        &["algolia", "dropbox", "okta", "snyk", "sonar", "spotify", "trello", "zendesk", "pagerduty", "newsapi", "openweather", "lastfm",  "linode",  "hetzner",  "rapidapi", "mapbox"],
        concat!(r"(?:algolia|dropbox|okta|snyk|sonar|spotify|trello|zendesk|pagerduty|newsapi|openweather|lastfm|linode|hetzner|rapidapi|mapbox)", r"[a-z_.-]{0,20}(?:token|secret|key)", set!(), r"([a-z0-9_.-]{20,})"),
    )
    .accept(judge::generated),
];

fn digits(candidate: &Candidate<'_>) -> bool {
    candidate.secret.iter().any(u8::is_ascii_digit) && !judge::stands_in(candidate.secret)
}

/// The name says key, token, secret or password.
fn named_secret(candidate: &Candidate<'_>) -> bool {
    let name = candidate.name().to_ascii_lowercase();
    let says = |word: &[u8]| name.windows(word.len()).any(|window| window == word);
    (says(b"key") || says(b"token") || says(b"secret") || says(b"auth") || says(b"pass"))
        && candidate.secret.iter().any(u8::is_ascii_digit)
        && !judge::stands_in(candidate.secret)
}
