//! Chat, mail, payment and other services.

use super::{DIGITS, Example, HEX, LOWER, MIXED, UPPER, example, noise, uuid};

pub(super) fn all() -> Vec<Example> {
    vec![
        example(
            "slack-token",
            [
                format!(
                    "xo{}-{}-{}-{}",
                    "xb",
                    noise(DIGITS, 12),
                    noise(DIGITS, 13),
                    noise(MIXED, 24)
                ),
                format!("xo{}-{}", "xp", noise(MIXED, 40)),
            ],
            [
                "xoxb-your-token-here-as-in-the-manual",
                "xoxb-xxxxxxxxxxxx-xxxxxxxxxxxx-xxxxxxxxxxxxxxxx",
            ],
        ),
        example(
            "slack-app-token",
            [format!(
                "xa{}-1-A{}-{}-{}",
                "pp",
                noise(UPPER, 10),
                noise(DIGITS, 13),
                noise(HEX, 64)
            )],
            ["xapp-1-"],
        ),
        example(
            "slack-webhook",
            [format!(
                "https://hooks.slack.{}/services/T{}/B{}/{}",
                "com",
                noise(UPPER, 8),
                noise(UPPER, 8),
                noise(MIXED, 24)
            )],
            ["https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"],
        ),
        example(
            "discord-webhook",
            [format!(
                "https://discord.com/api/{}/{}/{}",
                "webhooks",
                noise(DIGITS, 18),
                noise(MIXED, 68)
            )],
            ["https://discord.com/api/webhooks/<id>/<token>"],
        ),
        example(
            "discord-token",
            [format!(
                "DISCORD_{}=M{}.{}.{}",
                "TOKEN",
                noise(MIXED, 23),
                noise(MIXED, 6),
                noise(MIXED, 38)
            )],
            ["DISCORD_TOKEN=<your token>", "discord.client.login(config.token)"],
        ),
        example(
            "telegram-token",
            [format!("bot{}:A{}{}", noise(DIGITS, 10), "A", noise(MIXED, 33))],
            ["12345:AAA", "00:AA:BB:CC:DD:EE"],
        ),
        example(
            "stripe-key",
            [
                format!("sk_{}_{}", "live", noise(MIXED, 24)),
                format!("wh{}_{}", "sec", noise(MIXED, 32)),
            ],
            [
                "sk_test_xxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
                format!("pk_live_{}", noise(MIXED, 24)),
            ],
        ),
        example(
            "twilio-token",
            [format!("TWILIO_AUTH_{}={}", "TOKEN", noise(HEX, 32))],
            [
                format!("TWILIO_ACCOUNT_SID=AC{}", noise(HEX, 32)),
                "twilio_auth_token = os.environ[\"TWILIO\"]".to_owned(),
            ],
        ),
        example(
            "sendgrid-key",
            [format!("S{}.{}.{}", "G", noise(MIXED, 22), noise(MIXED, 43))],
            ["SG.name", "MSG.short.text"],
        ),
        example(
            "mailgun-key",
            [format!(
                "MAILGUN_API_{}={}-{}-{}",
                "KEY",
                noise(HEX, 32),
                noise(HEX, 8),
                noise(HEX, 8)
            )],
            ["MAILGUN_API_KEY=key-example", "mailgun.org"],
        ),
        example(
            "mailgun-private-key",
            [format!("ke{}-{}", "y", noise(HEX, 32))],
            [format!("monkey-{}", noise(HEX, 32)), "key-bindings".to_owned()],
        ),
        example(
            "mailchimp-key",
            [
                format!("MAILCHIMP_API_{}={}-u{}14", "KEY", noise(HEX, 32), "s"),
                format!("mandrill_{}: {}", "key", noise(MIXED, 22)),
            ],
            ["mailchimp_list = 0123456789", "MAILCHIMP_API_KEY=<key>-us14"],
        ),
        example(
            "brevo-key",
            [format!("xkey{}-{}-{}", "sib", noise(HEX, 64), noise(MIXED, 16))],
            ["xkeysib-"],
        ),
        example(
            "resend-key",
            [format!(
                "RESEND_API_{}=re_{}_{}",
                "KEY",
                noise(MIXED, 8),
                noise(MIXED, 24)
            )],
            [
                "resend_api_key = re_xxxxxxxx_xxxxxxxxxxxxxxxxxxxxxxxx",
                "resend: true",
            ],
        ),
        example(
            "shopify-token",
            [format!("shp{}_{}", "at", noise(HEX, 32))],
            ["shpat_", "shpat_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
        ),
        example(
            "square-token",
            [format!("sq0{}-{}", "atp", noise(MIXED, 22))],
            ["sq0atp-", "EAAAA"],
        ),
        example(
            "braintree-token",
            [format!(
                "access_{}$production${}${}",
                "token",
                noise(LOWER, 16),
                noise(HEX, 32)
            )],
            ["access_token$sandbox$"],
        ),
        example(
            "razorpay-key",
            [format!("rzp_{}_{}", "live", noise(MIXED, 14))],
            ["rzp_live_"],
        ),
        example(
            "shippo-token",
            [format!("shippo_{}_{}", "live", noise(HEX, 40))],
            ["shippo_live_"],
        ),
        example(
            "facebook-token",
            [format!("EA{}{}", "AC", noise(MIXED, 150))],
            ["EAAC", "EAAB1234"],
        ),
        example(
            "linear-key",
            [format!("lin_{}_{}", "api", noise(MIXED, 40))],
            ["lin_api_", "lin_api_key"],
        ),
        example(
            "notion-token",
            [
                format!("nt{}_{}{}", "n", noise(DIGITS, 11), noise(MIXED, 35)),
                format!("secre{}_{}", "t", noise(MIXED, 43)),
            ],
            ["ntn_", "secret_service_collection_default"],
        ),
        example(
            "figma-token",
            [format!("fi{}_{}", "gd", noise(MIXED, 40))],
            ["figd_"],
        ),
        example(
            "airtable-token",
            [format!(
                "AIRTABLE_{}=pat{}.{}",
                "TOKEN",
                noise(MIXED, 14),
                noise(HEX, 64)
            )],
            ["airtable_base = appABCDEFGHIJKLMN", "airtable.key = keyboard"],
        ),
        example(
            "grafana-token",
            [format!("gl{}_{}_{}", "sa", noise(MIXED, 32), noise(HEX, 8))],
            ["glsa_", "glc_short"],
        ),
        example(
            "sentry-token",
            [format!("sntr{}_{}", "yu", noise(HEX, 64))],
            ["sntryu_", "https://0123456789abcdef@sentry.example.org/1"],
        ),
        example(
            "postman-key",
            [format!("PM{}-{}-{}", "AK", noise(HEX, 24), noise(HEX, 34))],
            ["PMAK-"],
        ),
        example(
            "new-relic-key",
            [format!("NR{}-{}", "AK", noise(UPPER, 27))],
            ["NRAK-"],
        ),
        example(
            "datadog-key",
            [
                format!("DD_API_{}={}", "KEY", noise(HEX, 32)),
                format!("datadog_app_{}: {}", "key", noise(HEX, 40)),
            ],
            [
                "DD_API_KEY=<key>".to_owned(),
                format!("datadog_checksum: {}", noise(HEX, 40)),
            ],
        ),
        example(
            "dynatrace-token",
            [format!("dt0{}.{}.{}", "c01", noise(UPPER, 24), noise(UPPER, 64))],
            ["dt0c01."],
        ),
        example(
            "posthog-key",
            [format!("ph{}_{}", "x", noise(MIXED, 43))],
            [format!("phc_{}", noise(MIXED, 43))],
        ),
        example(
            "easypost-key",
            [format!("EZ{}{}", "AK", noise(MIXED, 54))],
            ["EZAK"],
        ),
        example(
            "frame-io-token",
            [format!("fio-{}-{}", "u", noise(MIXED, 64))],
            ["fio-u-", "duffel_live_"],
        ),
        example(
            "1password-token",
            [format!("ops_{}{}", "eyJ", noise(MIXED, 300))],
            ["ops_eyJ"],
        ),
        example(
            "1password-secret-key",
            [format!(
                "A{}-{}-{}-{}-{}-{}",
                "3",
                noise(UPPER, 6),
                noise(UPPER, 11),
                noise(UPPER, 5),
                "7KXQ2",
                "P4MZ9"
            )],
            ["A3-XXXXXX-XXXXXX-XXXXX-XXXXX-XXXXX-XXXXX", "A3-PAPER"],
        ),
        example(
            "teams-webhook",
            [format!(
                "https://x.webhook.office.{}/webhookb2/{}@{}/IncomingWebhook/{}/{}",
                "com",
                uuid(),
                uuid(),
                noise(HEX, 32),
                uuid()
            )],
            ["https://x.webhook.office.com/webhookb2/<id>"],
        ),
        example(
            "service-key",
            [
                format!("TRELLO_API_{}={}", "KEY", noise(HEX, 32)),
                format!("spotify_client_{}: \"{}\"", "secret", noise(LOWER, 32)),
            ],
            [
                "sonar.token=${SONAR_TOKEN}".to_owned(),
                format!("okta_id = {}", noise(HEX, 32)),
                "complex_token_kind = identifier_or_keyword_or_string".to_owned(),
            ],
        ),
    ]
}
