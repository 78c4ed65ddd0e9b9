//! Assignments to names that speak of secrets.

use super::{Example, HEX, MIXED, example, noise};

pub(super) fn all() -> Vec<Example> {
    vec![
        example(
            "password-assignment",
            [
                format!("{} = \"Tr0ub4dor&{}\"", "password", noise(MIXED, 4)),
                format!("DB_{}=k9{}", "PASSWORD", noise(MIXED, 8)),
                format!("  {}: k9-{}\n", "passphrase", noise(MIXED, 8)),
                format!("set imap_{} = \"k9{}\"", "pass", noise(MIXED, 8)),
                format!("[remote]\n{} = k9{}", "pass", noise(MIXED, 8)),
                format!("remote{} = k9{}", "pass", noise(MIXED, 8)),
                format!("auth {}: 'k9{}'", "pass", noise(MIXED, 8)),
                format!("\tps{}=\"k9{}\"", "k", noise(MIXED, 8)),
                format!(
                    "<add key=\"ClearText{}\" value=\"k9{}\" />",
                    "Password",
                    noise(MIXED, 8)
                ),
                format!("PG{}=k9{} psql -h db", "PASSWORD", noise(MIXED, 8)),
                format!("\"{}\":\"k9{}\"", "password", noise(MIXED, 8)),
                format!("<{0}>k9{1}</{0}>", "password", noise(MIXED, 8)),
                format!(
                    "<key>{}</key>\n\t<string>k9{}</string>",
                    "Password",
                    noise(MIXED, 8)
                ),
                format!("Server=db;Uid=me;Pwd{}k9{};", "=", noise(MIXED, 8)),
                format!("config[\"{}\"] = 'k9{}'", "password", noise(MIXED, 8)),
            ],
            [
                "password: String,",
                "password = changeme",
                "password = \"password123\"",
                "PASSWORD=${PASSWORD}",
                "password = getpass.getpass()",
                "password = self.config.password2",
                "passwordeval \"gpg --decrypt ~/.mail.gpg\"",
                "PASSWORD_STORE_DIR=/home/me/.password-store",
                "password: { type: String, required: true }",
                "passwd:         files systemd",
                "password\t[success=1 default=ignore]\tpam_unix.so obscure yescrypt2",
                "password_hash = \"$6$rounds=5000$abcdefgh\"",
                "password: \"Enter your password, at least 8 characters\"",
                "password = <your password 1>",
                "PWD=/home/me/src1",
                "password = \"{{ vault_password1 }}\"",
                "password = ENC[AES256_GCM,data:8f7e6d5c]",
                "password=\"$1\"",
                "  password: !vault |",
                "LOCALBYPASS: _ty_24 = _ty_24::BYPASS;",
                "# METHOD is \"reject\", \"password\", \"scram-sha-256\", \"gss\"",
                "password: String = value_9",
                "Password: needs 8chars at least",
            ],
        ),
        example(
            "secret-assignment",
            [
                format!("API_{}={}", "KEY", noise(MIXED, 24)),
                format!("client_{}: \"{}\"", "secret", noise(MIXED, 32)),
                format!("\"access_{}\" : \"{}\"", "token", noise(MIXED, 40)),
                format!("export MY_{}={}", "TOKEN", noise(HEX, 40)),
                format!("{} => '{}'", "secret_key_base", noise(HEX, 128)),
                format!("https://example.org/?api_{}={}&x=1", "key", noise(MIXED, 32)),
                format!(
                    "x.setApi{}('{}', \"api-{}\", '{}')",
                    "Host",
                    "h",
                    "key",
                    noise(MIXED, 32)
                ),
            ],
            [
                "\"token\": \"keyword.control.import.rust1\"",
                "token = self.tokens[index1].clone()",
                "token: t.accessToken1}",
                "secret = os.environ[\"SECRET_1234567890\"]",
                "API_KEY=your_api_key_goes_here_12",
                "api_key: ${API_KEY_OF_SERVICE_1}",
                "\"token\": \"123e4567-e89b-12d3-a456-426614174000\"",
                "token_uri = \"https://oauth2.example.org/token1234\"",
                "secret_file: /run/secrets/token_1a2b3c4d",
                "const token = await getAccessToken2(request, options);",
                "tokens_per_second = 123456789012345678",
                "secret: secretmanager1.projects.example.versions.latest",
                "self, private_key: ed25519.Ed25519PrivateKey, rest",
                "pub token: HaveAvx512ForAesGcm,",
                "token: D3D10_SB_RESOURCE_RETURN_TYPE,",
                "a(Token, SharedSecret, X25519HkdfSha256, XWing)",
                "api_key = xxxxxxxxxxxxxxxx1234567890",
                "token = \"<replace-with-token-1a2b3c>\"",
                "\"secretName\": \"my-app-1a2b3c-secret-4d5e6f\"",
            ],
        ),
        example(
            "key-variable",
            [
                format!("export WEATHER{}={}", "_KEY", noise(HEX, 32)),
                format!("  \"MAPS{}\": \"{}\"", "_KEY", noise(MIXED, 40)),
            ],
            [
                format!("RELEASE_PUBLIC_KEY={}", noise(MIXED, 44)),
                format!("CACHE_KEY: {}", noise(HEX, 40)),
                format!("sort_key = {}", noise(HEX, 40)),
                "DEPLOY_KEY=$DEPLOY_KEY_1234567890".to_owned(),
                "SIGNING_KEY=/etc/keys/release-2024-01.pem".to_owned(),
                "HKEY_LOCAL_MACHINE_KEY=Software1Microsoft2Windows3Run".to_owned(),
            ],
        ),
        example(
            "shell-variable",
            [
                format!("set -gx MAIL_{} k9{}", "PASSWORD", noise(MIXED, 10)),
                format!("set --export --global API_{} {}", "TOKEN", noise(HEX, 32)),
                format!("setenv MY_{} '{}'", "KEY", noise(MIXED, 24)),
            ],
            [
                "set -gx API_TOKEN (pass show api1)",
                "set -g key $key1234567",
                "set -g fish_key_bindings fish_vi_key_bindings2",
                "setenv SSH_KEY ~/.ssh/id_ed25519",
            ],
        ),
        example(
            "password-option",
            [
                format!("mysql -h db --{} k9{}", "password", noise(MIXED, 12)),
                format!("deploy --{} {}", "token", noise(MIXED, 20)),
                format!("sshpass -{} 'k9{}' ssh host", "p", noise(MIXED, 8)),
                format!("gpg --{} k9{} -d x", "passphrase", noise(MIXED, 8)),
            ],
            [
                "mysql --password --host db1.example.org",
                "deploy --token $TOKEN1234",
                "gpg --passphrase-fd 3 --batch",
                "tool --token keychain-entry",
                "tool --token <token1234>",
                "--secret name-of-it",
            ],
        ),
    ]
}
