//! Work is counted, not timed: patterns run rarely, and twice the bytes are twice the work.

use ingot_snapshot::secrets::{AllowList, Effort, Scanner};

use super::{hex, noise, secrets};

fn effort(content: &[u8]) -> Effort {
    let scanner = Scanner::new(&AllowList::default());
    let mut file = scanner.file(b"file");
    file.feed(content);
    let (_, effort) = file.finish_with_effort();
    assert_eq!(effort.bytes, content.len() as u64);
    effort
}

/// A page of prose and configuration without anything to find.
fn page() -> String {
    let mut page = String::new();
    for n in 0..40 {
        page.push_str(
            "The quick brown fox jumps over the lazy dog, and then it goes home to sleep for a while.\n",
        );
        page.push_str(&format!(
            "[section-{n}]\nname = \"value {n}\"\npath = /home/me/.config/tool-{n}/settings.toml\n"
        ));
        page.push_str(
            "  - { key: ctrl+shift+p, command: workbench.action.showCommands, when: editorTextFocus }\n",
        );
        page.push_str("fn main() { let mut total = 0; for item in list.iter() { total += item.count; } }\n");
    }
    page
}

#[test]
fn text_that_holds_nothing_is_passed_over() {
    let content = page().repeat(200);
    let effort = effort(content.as_bytes());
    assert!(effort.bytes > 2_000_000);
    assert!(effort.stops * 50 < effort.bytes, "{effort:?}");
    assert!(effort.patterns * 1000 < effort.bytes, "{effort:?}");
}

#[test]
fn ten_megabytes_of_chance_are_linear() {
    let content = noise(7, 10 << 20);
    let whole = effort(&content);
    let half = effort(&content[..5 << 20]);
    assert!(whole.stops < content.len() as u64 / 50, "{whole:?}");
    assert!(whole.patterns < 2000, "{whole:?}");
    assert!(
        whole.stops < half.stops * 21 / 10 && whole.stops > half.stops * 19 / 10,
        "{whole:?} {half:?}"
    );
    // The same as text: no byte is zero.
    let text: Vec<u8> = content.iter().map(|byte| (*byte).max(1)).collect();
    let text = effort(&text);
    assert!(text.patterns < 20_000, "{text:?}");
}

#[test]
fn files_full_of_secrets_stay_linear() {
    let piece = secrets().join("\n");
    let once = effort(piece.repeat(500).as_bytes());
    let twice = effort(piece.repeat(1000).as_bytes());
    assert!(twice.patterns <= once.patterns * 21 / 10, "{once:?} {twice:?}");
    // One literal after the other: each may run its pattern once, on a window of bounded size.
    for literal in [
        "token=",
        "://",
        "password:",
        "-----BEGIN ",
        "AKIA",
        "eyJ",
        ":AA",
        "secret",
        "_authToken=",
    ] {
        let content = literal.repeat(200_000 / literal.len());
        let effort = effort(content.as_bytes());
        assert!(
            effort.patterns <= 3 * (content.len() / literal.len()) as u64,
            "{literal}: {effort:?}"
        );
    }
}

#[test]
fn hashes_run_no_patterns() {
    let content: String = (0..20_000)
        .map(|n| format!("{}  ./file-{n}\n", hex(n, 64)))
        .collect();
    let effort = effort(content.as_bytes());
    assert!(effort.patterns * 1000 < effort.bytes, "{effort:?}");
}
