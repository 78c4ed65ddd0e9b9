//! The rules against their examples, and the scan against what it promises.

use std::collections::HashSet;

use super::*;

/// The findings of a whole file.
fn scan(path: &str, content: &[u8]) -> Vec<Finding> {
    let scanner = Scanner::new(&AllowList::default());
    let mut file = scanner.file(path.as_bytes());
    file.feed(content);
    file.finish()
}

fn names(content: &str) -> Vec<&'static str> {
    scan("file", content.as_bytes())
        .iter()
        .map(|finding| finding.rule)
        .collect()
}

#[test]
fn every_pattern_compiles_and_every_name_is_one() {
    let mut seen = HashSet::new();
    for rule in rules::all() {
        engine::compile(rule).unwrap_or_else(|error| panic!("{}: {error}", rule.name));
        assert!(seen.insert(rule.name), "{} is there twice", rule.name);
        for literal in rule.literals {
            assert!(
                literal.len() >= 3,
                "{}: {literal:?} is too short to be found",
                rule.name
            );
        }
    }
}

#[test]
fn every_rule_has_examples_of_both_kinds_that_hold() {
    let examples = examples::all();
    let mut wrong = Vec::new();
    for rule in rules::all() {
        let of_rule: Vec<_> = examples
            .iter()
            .filter(|example| example.rule == rule.name)
            .collect();
        if of_rule.iter().all(|example| example.secrets.is_empty())
            || of_rule.iter().all(|example| example.harmless.is_empty())
        {
            wrong.push(format!("{} lacks examples", rule.name));
        }
    }
    for example in &examples {
        for secret in &example.secrets {
            // In the middle of a file, and all there is of it.
            for content in [format!("first line\n{secret}\nlast line\n"), secret.clone()] {
                let found = names(&content);
                if found != [example.rule] {
                    wrong.push(format!("{} finds {found:?} in {content:?}", example.rule));
                }
            }
        }
        for harmless in &example.harmless {
            let found = names(harmless);
            if !found.is_empty() {
                wrong.push(format!(
                    "{}: {found:?} in the harmless {harmless:?}",
                    example.rule
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn findings_show_where_and_never_what() {
    let public: Vec<&str> = rules::all().flat_map(|rule| rule.literals).copied().collect();
    let mut looked_at = 0;
    for example in examples::all() {
        for secret in example.secrets {
            for finding in scan("some file", format!("\n\n{secret}").as_bytes()) {
                assert!((3..=4).contains(&finding.line), "{finding:?}");
                assert!(finding.how_to_allow.contains("rivet untrack 'some file'"));
                assert!(finding.how_to_allow.contains(&finding.fingerprint));
                let shown = format!("{finding:?}");
                for window in secret.as_bytes().windows(10) {
                    let window = String::from_utf8_lossy(window);
                    // Words and the public beginnings of tokens are no secret.
                    let chance = window.bytes().any(|byte| byte.is_ascii_digit())
                        && judge::entropy(window.as_bytes()) > 2.9;
                    if chance && !public.iter().any(|literal| literal.contains(window.as_ref())) {
                        looked_at += 1;
                        assert!(!shown.contains(window.as_ref()), "{shown} shows {window}");
                    }
                }
            }
        }
    }
    assert!(looked_at > 1000, "{looked_at}");
}

/// A secret that one rule finds, for tests that are not about rules.
fn secret() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
}

#[test]
fn lines_are_those_of_an_editor() {
    let content = format!("{0}\n\r\n{0} {0}\n{1}{0}", secret(), "\n".repeat(100_000));
    let found = scan("file", content.as_bytes());
    let lines: Vec<u64> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [1, 3, 3, 100_004]);
    let same: HashSet<&str> = found.iter().map(|finding| finding.fingerprint.as_str()).collect();
    assert_eq!(same.len(), 1, "one secret has one fingerprint");
}

#[test]
fn a_comment_allows_its_line_and_no_other() {
    let secret = secret();
    let lines = |content: &str| {
        scan("file", content.as_bytes())
            .iter()
            .map(|finding| finding.line)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(&format!("{secret} # rivet:allow\n{secret}\n")), [2]);
    assert_eq!(lines(&format!("/* rivet:allow */ {secret}\n")), [0; 0]);
    assert_eq!(lines(&format!("# rivet:allow\n{secret}\n")), [2]);
    assert_eq!(lines(&format!("# rivet:allow-next\n{secret}\n{secret}\n")), [3]);
    assert_eq!(lines(&format!("{secret} # rivet:allow(github-token)\n")), [0; 0]);
    assert_eq!(
        lines(&format!("{secret} # rivet:allow(jwt, github-token )\n")),
        [0; 0]
    );
    assert_eq!(lines(&format!("{secret} # rivet:allow(jwt)\n")), [1]);
    assert_eq!(lines(&format!("{secret} # rivet:allow(\n")), [1]);
    assert_eq!(
        lines(&format!("{secret}{}rivet:allow\n{secret}", " ".repeat(200_000))),
        [2]
    );
    // However many are allowed, the one that is not is found.
    assert_eq!(
        lines(&format!(
            "{}{secret}",
            format!("{secret} rivet:allow\n").repeat(5000)
        )),
        [5001]
    );
}

#[test]
fn a_fingerprint_allows_a_secret_everywhere() {
    let found = scan("file", secret().as_bytes());
    let allow = AllowList::new([&found[0].fingerprint]).expect("a fingerprint");
    let scanner = Scanner::new(&allow);
    let mut file = scanner.file(b"other");
    file.feed(format!("x\n{}\n{}\n", secret(), secret().replace("a1B2", "z9Y8")).as_bytes());
    let lines: Vec<u64> = file.finish().iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [3]);

    let path = scanner.scan_path(b"a/.netrc").expect("a finding");
    let allow = AllowList::new([&path.fingerprint]).expect("a fingerprint");
    assert_eq!(Scanner::new(&allow).scan_path(b"a/.netrc"), None);
    assert!(Scanner::new(&allow).scan_path(b"b/.netrc").is_some());
}

#[test]
fn the_most_exact_rule_names_a_finding() {
    assert_eq!(names(&format!("api_key = \"{}\"", secret())), ["github-token"]);
    assert_eq!(
        names(&format!("https://me:{}@git.example.org", secret())),
        ["github-token"]
    );
}

#[test]
fn binary_files_are_asked_for_fixed_forms_only() {
    let assignment = ["password = k9", "x7Lq2Wz4"].concat();
    let binary = |content: &str| scan("file", format!("\x7fELF\0{content}\0").as_bytes());
    assert_eq!(names(&assignment), ["password-assignment"]);
    assert_eq!(binary(&assignment), []);
    let found = binary(&secret());
    assert_eq!(found.len(), 1);
    assert!(
        !found[0].how_to_allow.contains("comment"),
        "{}",
        found[0].how_to_allow
    );
}

#[test]
fn utf16_is_text() {
    let content = format!("\u{feff}\r\npassword = \"{}\"\r\n", "k9x7Lq2Wz4");
    for bytes in [
        content
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>(),
        content.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    ] {
        let found = scan("profile.ps1", &bytes);
        assert_eq!(
            found
                .iter()
                .map(|finding| (finding.rule, finding.line))
                .collect::<Vec<_>>(),
            [("password-assignment", 2)]
        );
    }
}

#[test]
fn findings_are_kept_to_a_hundred() {
    let content: String = (0..1000)
        .map(|n| format!("{}{n:04}\n", &secret()[..36]))
        .collect();
    assert_eq!(scan("file", content.as_bytes()).len(), 100);
    // On one line there is no end of it until the file ends.
    assert_eq!(scan("file", content.replace('\n', " ").as_bytes()).len(), 100);
}

#[test]
fn secrets_are_found_across_every_border_of_blocks() {
    for before in (65_536 - 60..65_536 + 4).chain(131_072 - 60..131_072 + 4) {
        let content = format!("{}\n{}\n{}", "x".repeat(before), secret(), "y".repeat(70_000));
        let found = scan("file", content.as_bytes());
        assert_eq!(
            found.iter().map(|finding| finding.line).collect::<Vec<_>>(),
            [2],
            "{before}"
        );
    }
}

#[test]
fn whoever_changes_what_is_found_raises_the_version() {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher
            .update(&(text.len() as u64).to_le_bytes())
            .update(text.as_bytes());
    };
    for rule in rules::all() {
        add(rule.name);
        rule.literals.iter().for_each(|literal| add(literal));
        add(rule.pattern);
        add(&format!(
            "{:?} {} {} {} {:?} {} {} {} {}",
            rule.start,
            rule.exact,
            rule.reach,
            rule.follow,
            rule.needs,
            rule.left,
            rule.right,
            rule.entropy,
            rule.binary
        ));
    }
    paths::content().for_each(&mut add);
    stand_ins::words().for_each(|word| add(&String::from_utf8_lossy(word)));
    let rules = hasher.finalize().to_hex();
    assert_eq!(
        (SECRET_SCAN_VERSION, &rules[..16]),
        (1, "d142692d2bb34a6b"),
        "the rules changed: raise SECRET_SCAN_VERSION (unless it was raised since the last release) and note it here"
    );
}

#[test]
fn the_document_names_every_rule_and_no_other() {
    let document = include_str!("../../../docs/secret-rules.md");
    let named: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let rules: Vec<&str> = Scanner::rules().map(|rule| rule.name).collect();
    assert_eq!(named, rules);
    for rule in Scanner::rules().filter(|rule| !rule.path) {
        let row = format!(
            "| `{}` | {} | {} |",
            rule.name,
            rule.what,
            if rule.binary { "b" } else { "" }
        );
        assert!(
            document.contains(&row),
            "docs/secret-rules.md lacks the row {row}"
        );
    }
    for place in paths::content().filter(|place| !place.starts_with("path-")) {
        assert!(
            document.contains(&format!("`{place}`")),
            "docs/secret-rules.md lacks {place}"
        );
    }
}
