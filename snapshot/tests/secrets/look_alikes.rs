//! Files that look like secrets and are none.

use std::fs;
use std::path::{Path, PathBuf};

use super::{hex, noise, scan};

/// Nothing may be found in the content, nor in the place.
fn harmless(path: &str, content: &str) {
    assert_eq!(scan(path, content.as_bytes()), [], "{path}");
    let scanner = ingot_snapshot::secrets::Scanner::new(&Default::default());
    assert_eq!(scanner.scan_path(path.as_bytes()), None);
}

fn base64(seed: u64, bytes: usize) -> String {
    data_encoding::BASE64.encode(&noise(seed, bytes))
}

fn uuid(seed: u64) -> String {
    let digits = hex(seed, 32);
    format!(
        "{}-{}-{}-{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..]
    )
}

#[test]
fn lock_files() {
    let mut npm = String::from("{\"lockfileVersion\": 3, \"packages\": {\n");
    let mut yarn = String::new();
    let mut go = String::new();
    let mut poetry = String::new();
    let mut flake = String::from("{\"nodes\": {");
    for (n, name) in [
        "js-tokens",
        "token-types",
        "secret-stack",
        "password-validator",
        "api-key-auth",
        "left-pad",
    ]
    .iter()
    .cycle()
    .take(600)
    .enumerate()
    {
        let seed = n as u64;
        let hash = base64(seed, 64);
        npm.push_str(&format!(
            "\"node_modules/{name}\": {{\"version\": \"1.2.{n}\", \"resolved\": \"https://registry.npmjs.org/{name}/-/{name}-1.2.{n}.tgz\", \"integrity\": \"sha512-{hash}\"}},\n"
        ));
        yarn.push_str(&format!("{name}@^1.2.{n}:\n  version \"1.2.{n}\"\n  resolved \"https://registry.yarnpkg.com/{name}/-/{name}-1.2.{n}.tgz#{}\"\n  integrity sha512-{hash}\n\n", hex(seed, 40)));
        go.push_str(&format!(
            "example.org/{name} v1.2.{n} h1:{}=\nexample.org/{name} v1.2.{n}/go.mod h1:{}\n",
            &base64(seed, 32)[..43],
            base64(seed + 1, 32)
        ));
        poetry.push_str(&format!("[[package]]\nname = \"{name}\"\nversion = \"1.2.{n}\"\nfiles = [\n    {{file = \"{name}-1.2.{n}.whl\", hash = \"sha256:{}\"}},\n]\n", hex(seed, 64)));
        flake.push_str(&format!("\"{name}-{n}\": {{\"locked\": {{\"lastModified\": 17000{n}, \"narHash\": \"sha256-{}\", \"rev\": \"{}\"}}}},", base64(seed, 32), hex(seed, 40)));
    }
    harmless("package-lock.json", &npm);
    harmless("yarn.lock", &yarn);
    harmless("go.sum", &go);
    harmless("poetry.lock", &poetry);
    harmless("flake.lock", &flake);
    let cargo = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"))
        .expect("the workspace's own");
    assert!(cargo.len() > 10_000);
    harmless("Cargo.lock", &cargo);
}

#[test]
fn minified_scripts() {
    let script = "!function(e,t){\"object\"==typeof exports?module.exports=t():e.token=t()}(this,function(){\"use strict\";\
        var n={password:e.password,token:t.token1,secret:null,apiKey:void 0};function r(e){return e.accessToken||(e.accessToken=a(e.refreshToken2))}\
        const o=e=>e.token??await s({password:u.value,token:`${f}`});xhr.setRequestHeader(\"Authorization\",\"Bearer \"+c.accessToken);\
        t.url=\"https://\"+e.user+\":\"+e.password+\"@\"+e.host;if(token===T.IDENTIFIER&&secret!==S[12])d={tokenType:7,tokenStart:p,secretKey:g.secretKey};\
        l.tokenize=function(e,t){return t.token=e.match(/^[a-z0-9_]+/i)};var k={passwordField:\"input[type=password]\",TOKEN:\"__TOKEN__\"};});";
    harmless("app.min.js", &script.repeat(300));
    let source_map = format!(
        "{{\"version\":3,\"sources\":[\"token.ts\"],\"mappings\":\"{}\"}}",
        "AAAA,SAASA,EAAYC,GACnB,OAAOA,EAAMC;".repeat(3000)
    );
    harmless("app.js.map", &source_map);
    harmless(
        "image.css",
        &format!(
            ".token-icon{{background:url(data:image/png;base64,{})}}",
            base64(3, 60_000)
        ),
    );
}

#[test]
fn identifiers_and_sums() {
    let lines = |line: &dyn Fn(u64) -> String| (0..3000).map(line).collect::<String>();
    harmless(
        "SHA256SUMS",
        &lines(&|n| format!("{}  file-{n}.tar.gz\n", hex(n, 64))),
    );
    harmless(
        "packed-refs",
        &lines(&|n| format!("{} refs/heads/token-{n}\n^{}\n", hex(n, 40), hex(n + 1, 40))),
    );
    harmless(
        "uuids",
        &lines(&|n| {
            format!(
                "{}\nid = \"{}\"\ntoken_id: {}\nPARTUUID={}\n",
                uuid(n),
                uuid(n + 1),
                uuid(n + 2),
                uuid(n + 3)
            )
        }),
    );
    harmless(
        "fstab",
        &lines(&|n| format!("UUID={} /mnt/{n} ext4 defaults 0 2\n", uuid(n))),
    );
    harmless(
        "known_hosts",
        &lines(&|n| {
            format!(
                "|1|{}|{} ssh-ed25519 {}\n",
                base64(n, 20),
                base64(n + 1, 20),
                base64(n, 51)
            )
        }),
    );
    harmless(
        "authorized_keys",
        &lines(&|n| {
            format!(
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} me@laptop\n",
                &base64(n, 33)[..43]
            )
        }),
    );
    harmless("random.txt", &lines(&|n| format!("{}\n", base64(n, 57))));
}

#[test]
fn key_bindings_and_settings() {
    harmless(
        ".config/Code/User/keybindings.json",
        r#"[
            {"key": "ctrl+k ctrl+shift+8", "command": "editor.action.inspectTMScopes"},
            {"key": "ctrl+alt+1", "command": "github.copilot.generate", "args": {"token": "keyword1"}},
            {"key": "f12", "command": "vim_passwordPrompt2", "when": "editorTextFocus && !inDebugRepl"}
        ]"#,
    );
    harmless(
        ".config/Code/User/settings.json",
        r##"{
            "editor.semanticTokenColorCustomizations": {"rules": {"*.token:rust": "#a1b2c3d4", "token.punctuation1": "#0a1b2c"}},
            "editor.tokenColorCustomizations": {"textMateRules": [{"scope": ["entity.name.token.v2", "keyword.control.import.es6"]}]},
            "gitlens.secretKeyName": "none", "http.proxyAuthorization": null, "remote.SSH.passwordAuthentication": false,
            "workbench.colorTheme": "Token Dark 2024", "keytar.passwordPrompt": "Enter the password of 8 to 20 characters"
        }"##,
    );
    harmless(
        ".tmux.conf",
        "bind-key -T copy-mode-vi C-v send-keys -X rectangle-toggle\nset -g status-right '#(token=$(cat /tmp/t1); curl -s https://example.org/?t=$token)'\n",
    );
    harmless(
        ".zshrc",
        "export GITHUB_TOKEN=$(gh auth token)\nexport API_KEY=\"${API_KEY:-$(pass show api/key1)}\"\nexport SECRET_KEY_FILE=~/.secrets/key_1a2b\n\
         alias p='pass -c mail/password1'\nPASSWORD_STORE_DIR=$HOME/.password-store2\nread -s \"?Password: \" PASSWORD1\nOPENAI_API_KEY=$(security find-generic-password -s openai -w)\n\
         token() { jq -r .access_token < ~/.cache/t1.json }\nexport TOKEN=`cat ~/.token2`\n",
    );
    harmless(
        ".gitconfig",
        "[credential]\n\thelper = cache --timeout=3600\n[sendemail]\n\tsmtpPassCmd = pass show smtp1\n[user]\n\tsigningKey = 0xA1B2C3D4E5F60718\n",
    );
    harmless(
        ".mbsyncrc",
        "IMAPAccount work\nPassCmd \"gpg2 -q --for-your-eyes-only -d ~/.mail.gpg\"\nUser me@example.org\n",
    );
    harmless(
        "pam.d/common-password",
        "password\t[success=2 default=ignore]\tpam_unix.so obscure yescrypt\npassword\trequisite\t\t\tpam_deny.so\n",
    );
    harmless(
        "nsswitch.conf",
        "passwd:         files systemd sss\nshadow:         files systemd\n",
    );
    harmless(
        "sshd_config",
        "PasswordAuthentication no\nPermitEmptyPasswords no\nHostKey /etc/ssh/ssh_host_ed25519_key\n",
    );
    harmless(
        "strings.json",
        "{\"password\": \"Password\", \"password_hint\": \"Use 8 or more characters with a mix of letters, numbers & symbols\", \"token_label\": \"Token (v2)\"}",
    );
}

#[test]
fn encrypted_files() {
    let armor = |kind: &str| {
        let body: String = (0..40).map(|n| format!("{}\n", base64(n, 48))).collect();
        format!("-----BEGIN {kind}-----\n\n{body}-----END {kind}-----\n")
    };
    harmless("secrets.age", &armor("AGE ENCRYPTED FILE"));
    harmless("mail.asc", &armor("PGP MESSAGE"));
    harmless("me.asc", &armor("PGP PUBLIC KEY BLOCK"));
    harmless("ca.pem", &armor("CERTIFICATE"));
    harmless("signature", &armor("SSH SIGNATURE"));
    let vault: String = (0..30).map(|n| format!("          {}\n", hex(n, 80))).collect();
    harmless(
        "group_vars/all.yml",
        &format!("db_password: !vault |\n          $ANSIBLE_VAULT;1.1;AES256\n{vault}"),
    );
    harmless("vault.yml", &format!("$ANSIBLE_VAULT;1.1;AES256\n{vault}"));
    harmless(
        "sops.yaml",
        &format!(
            "password: ENC[AES256_GCM,data:{},iv:{},tag:{},type:str]\nsops:\n    age:\n        - recipient: age1{}\n",
            base64(1, 20),
            base64(2, 32),
            base64(3, 16),
            hex(4, 58)
        ),
    );
    harmless(
        "eyaml.yaml",
        &format!("password: ENC[PKCS7,{}]\n", base64(5, 300)),
    );
    harmless("hiera", "password: DEC::PKCS7[]!\n");
    harmless("secret.gpg", &String::from_utf8_lossy(&noise(9, 5000)));
}

#[test]
fn stand_ins() {
    harmless(
        ".env.example",
        "API_KEY=your-api-key-here-1234\nAPI_KEY=<api-key-1234567>\nSECRET_KEY=changeme12345678\nDB_PASSWORD=changeme\nDB_PASSWORD=password123\n\
         TOKEN=xxxxxxxxxxxxxxxxxxxxxxxxxxxx1\nTOKEN=${TOKEN_FROM_VAULT_1}\nTOKEN={{ token_from_vault_1 }}\nSECRET=%SECRET_FROM_ENV_123%\n\
         AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n\
         DATABASE_URL=postgres://postgres:postgres@localhost:5432/dev\nREDIS_URL=redis://:${REDIS_PASSWORD}@redis:6379\nSTRIPE_KEY=sk_test_xxxxxxxxxxxxxxxxxxxxxxxx\n\
         JWT=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c\n",
    );
}

/// Files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_rules_themselves_and_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in [
        "snapshot/src/secrets",
        "snapshot/src/packages",
        "snapshot/tests/secrets",
        "snapshot/tests/packages",
    ] {
        sources(&root.join(folder), &mut files);
    }
    assert!(
        files
            .iter()
            .any(|path| path.ends_with("secrets/rules/code_hosts.rs"))
    );
    files.push(root.join("docs/secret-rules.md"));
    let mut bytes = 0;
    for path in files {
        let content = fs::read(&path).expect("a file");
        bytes += content.len();
        assert_eq!(scan("file", &content), [], "{}", path.display());
    }
    assert!(bytes > 100_000, "{bytes}");
}
