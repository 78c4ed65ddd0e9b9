//! Passwords in URLs and headers.

use super::{Example, HEX, LOWER, MIXED, base64, example, noise};

pub(super) fn all() -> Vec<Example> {
    let jwt = |payload: &str| {
        let part = |text: &str| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
        format!(
            "{}.{}.{}",
            part("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"),
            part(payload),
            noise(MIXED, 43)
        )
    };
    vec![
        example(
            "url-password",
            [
                format!("postgres{}app:k9{}@db.lan/app", "://", noise(MIXED, 10)),
                format!("DATABASE=mysql{}root:s3{}@127.0.0.1:3306", "://", noise(MIXED, 8)),
                format!("redis{}:{}@[::1]:6379/0", "://", noise(MIXED, 16)),
                format!("amqp{}svc:{}@queue", "://", noise(MIXED, 9)),
                format!("smtp{}me%40example.org:{}@mail.lan", "://", noise(MIXED, 12)),
                format!("https{}me:x{}@git.lan/a.git", "://", noise(MIXED, 12)),
            ],
            [
                "postgres://user:password@localhost/db",
                "postgres://postgres:postgres@localhost",
                "https://user:${TOKEN}@example.org",
                "https://{user}:{password}@example.org",
                "mongodb://<user>:<password>@host",
                "http://localhost:3000/@vite/client",
                "docker://registry.example.org/image:1.0@sha256:0123",
                "docker://ubuntu:22.04@sha256:0123456789abcdef",
                "https://example.org:8080/a@b",
                "\"https://\" + user + \":\" + password + \"@\" + host",
                "ssh://git@example.org:22/a.git",
                "redis://:%s@%s:6379",
                "https://abc:xyz0123@example.org/",
                "https://abc:xyz0123@db.test:99/",
                "https://user:********@example.org",
            ],
        ),
        example(
            "url-token",
            [
                format!("https{}{}@git.lan/a.git", "://", noise(HEX, 40)),
                format!("https{}{}:x-oauth-basic@git.lan/a", "://", noise(LOWER, 36)),
            ],
            [
                "https://username-of-somebody@git.example.org/a",
                "https://some-long-host-name.example.org/@scope/name",
            ],
        ),
        example(
            "authorization-header",
            [
                format!("curl -H 'Author{}: Bearer {}'", "ization", noise(MIXED, 40)),
                format!("\"Author{}\": \"Basic {}\"", "ization", base64(18)),
            ],
            [
                "Authorization: Bearer ${TOKEN}",
                "Authorization: Bearer <token>",
                "Authorization: Bearer your_access_token_goes_here1",
            ],
        ),
        example(
            "netrc-login",
            [
                format!(
                    "machine git.example.org login me {} k9{}",
                    "password",
                    noise(MIXED, 12)
                ),
                format!("machine a\n  login b\n  {} {}\n", "password", noise(MIXED, 12)),
            ],
            [
                "machine example.org login me password changeme",
                "machine HOST login USER password \"PASSWORD\"",
                "the machine learns to login and password rules",
            ],
        ),
        example(
            "curl-user",
            [
                format!("cur{} -s -u me:{} https://example.org", "l", noise(MIXED, 12)),
                format!("cur{} --user \"me:{}\" x", "l", noise(MIXED, 12)),
            ],
            [
                "curl -u user:password https://example.org",
                "curl -u \"$USER:$PASSWORD\" x",
                "curl -u me https://example.org",
            ],
        ),
        example(
            "jwt",
            [format!("\"{}\"", jwt("{\"sub\":\"4711\",\"name\":\"Somebody\"}"))],
            [
                jwt("{\"sub\":\"1234567890\",\"name\":\"John Doe\"}"),
                "eyJhbGciOiJIUzI1NiJ9".to_owned(),
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NzExIn0.short".to_owned(),
            ],
        ),
    ]
}
