//! Managers of languages and editors.

use ingot_snapshot::packages::Manager;

use super::machine::Machine;

#[test]
fn cargo_in_both_forms() {
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let expected = [
        "bat 0.24.0 explicit",
        "tool 0.1.0 explicit git+https://git.lan/tool#0123",
    ];
    let machine = Machine::new();
    machine.write(
        "~/.cargo/.crates2.json",
        format!("{{\"installs\":{{\"tool 0.1.0 (git+https://git.lan/tool#0123)\":{{\"bins\":[\"tool\"]}},\"bat 0.24.0 ({registry})\":{{\"version_req\":null}}}}}}"),
    );
    assert_eq!(machine.listing(Manager::Cargo), expected);
    let machine = Machine::new();
    machine.write(
        "~/.cargo/.crates.toml",
        format!("[v1]\n\"bat 0.24.0 ({registry})\" = [\"bat\"]\n\"tool 0.1.0 (git+https://git.lan/tool#0123)\" = [\"tool\"]\n"),
    );
    assert_eq!(machine.listing(Manager::Cargo), expected);
}

#[test]
fn pip_without_what_the_distribution_installed() {
    let machine = Machine::new();
    let user = "~/.local/lib/python3.12/site-packages";
    let debian = "usr/lib/python3/dist-packages";
    machine
        .write(
            &format!("{user}/Rich-13.7.0.dist-info/METADATA"),
            "Metadata-Version: 2.1\nName: rich\nVersion: 13.7.0\n\nName: not this\n",
        )
        .write(&format!("{user}/Rich-13.7.0.dist-info/INSTALLER"), "pip\n")
        .write(&format!("{user}/Rich-13.7.0.dist-info/REQUESTED"), "")
        .write(
            &format!("{user}/Pygments-2.17.dist-info/METADATA"),
            "Name: Pygments\nVersion: 2.17\n",
        )
        .write(&format!("{user}/Pygments-2.17.dist-info/INSTALLER"), "pip\n")
        .write(
            &format!("{user}/tool-1.0.dist-info/METADATA"),
            "Name: tool\nVersion: 1.0\n",
        )
        .write(
            &format!("{user}/tool-1.0.dist-info/direct_url.json"),
            "{\"url\":\"https://git.lan/tool\",\"vcs_info\":{\"vcs\":\"git\",\"commit_id\":\"0123\"}}",
        )
        .write(
            &format!("{debian}/PyYAML-6.0.dist-info/METADATA"),
            "Name: PyYAML\nVersion: 6.0\n",
        )
        .write(&format!("{debian}/PyYAML-6.0.dist-info/INSTALLER"), "debian\n")
        .write(&format!("{debian}/wheel-0.4.dist-info/INSTALLER"), "pip\n")
        .write(
            "~/Library/Python/3.9/lib/python/site-packages/six-1.16.dist-info/METADATA",
            "Name: six\nVersion: 1.16\n",
        );
    assert_eq!(
        machine.listing(Manager::Pip),
        [
            "Pygments 2.17 dependency",
            "rich 13.7.0 explicit",
            "six 1.16 unknown",
            "tool 1.0 unknown git+https://git.lan/tool",
            "wheel 0.4 dependency"
        ]
    );
}

#[test]
fn programs_of_pipx_and_uv() {
    let machine = Machine::new();
    machine
        .write(
            "~/.local/share/pipx/venvs/black/pipx_metadata.json",
            "{\"main_package\":{\"package\":\"black\",\"package_or_url\":\"black\",\"package_version\":\"24.1.0\"},\"injected_packages\":{}}",
        )
        .write(
            "~/.local/pipx/venvs/tool/pipx_metadata.json",
            "{\"main_package\":{\"package\":\"tool\",\"package_or_url\":\"git+https://git.lan/tool\",\"package_version\":\"0.1\"}}",
        )
        .write("~/.local/share/uv/tools/my-tool/uv-receipt.toml", "[tool]\n")
        .folder("~/.local/share/uv/tools/my-tool/lib/python3.12/site-packages/My_Tool-2.0.dist-info")
        .folder("~/.local/share/uv/tools/.lock");
    assert_eq!(
        machine.listing(Manager::Pipx),
        [
            "black 24.1.0 explicit",
            "tool 0.1 explicit git+https://git.lan/tool"
        ]
    );
    assert_eq!(machine.listing(Manager::Uv), ["my-tool 2.0 explicit"]);
}

#[test]
fn npm_in_every_prefix() {
    let machine = Machine::new();
    let package = |name: &str, version: &str| {
        format!("{{\"name\":\"{name}\",\"version\":\"{version}\",\"scripts\":{{}}}}")
    };
    machine
        .write(
            "usr/local/lib/node_modules/npm/package.json",
            package("npm", "10.2.0"),
        )
        .write("usr/local/lib/node_modules/.package-lock.json", "{}")
        .write(
            "usr/local/lib/node_modules/@scope/tool/package.json",
            package("@scope/tool", "1.0.0"),
        )
        .write(
            "~/.nvm/versions/node/v20.1.0/lib/node_modules/prettier/package.json",
            package("prettier", "3.0.0"),
        )
        .write(
            "~/.npmrc",
            "prefix=${HOME}/node\n//registry.lan/:strict-ssl=true\n",
        )
        .write(
            "~/node/lib/node_modules/yarn/package.json",
            package("yarn", "1.22.0"),
        );
    assert_eq!(
        machine.listing(Manager::Npm),
        [
            "@scope/tool 1.0.0 explicit",
            "npm 10.2.0 dependency",
            "prettier 3.0.0 explicit",
            "yarn 1.22.0 explicit"
        ]
    );
}

/// A program with the record that Go's linker writes.
pub fn go_program(path: &str, version: &str) -> Vec<u8> {
    let text = format!("path\t{path}\nmod\texample.org/tool\t{version}\th1:sum=\n");
    let framed = [&[b'<'; 16], text.as_bytes(), &[b'>'; 16]].concat();
    assert!(framed.len() < 128, "one byte holds the length");
    let mut program = vec![0x7f; 1000];
    program.extend_from_slice(b"\xff Go build");
    program.extend_from_slice(b"inf:\x08\x02");
    program.extend_from_slice(&[0; 16]);
    program.extend_from_slice(b"\x08go1.24.1");
    program.push(framed.len() as u8);
    program.extend_from_slice(&framed);
    program
}

#[test]
fn go_programs_tell_themselves() {
    let machine = Machine::new();
    machine
        .write("~/go/bin/tool", go_program("example.org/tool/cmd/tool", "v1.2.3"))
        .write("~/.config/go/env", "GOBIN=/opt/gobin\nGOFLAGS=-mod=mod\n")
        .write("opt/gobin/other", go_program("example.org/other", "(devel)"))
        .folder("~/go/bin/linux_arm64");
    assert_eq!(
        machine.listing(Manager::Go),
        [
            "example.org/other (devel) explicit",
            "example.org/tool/cmd/tool v1.2.3 explicit"
        ]
    );
}

#[test]
fn extensions_of_editors() {
    let machine = Machine::new();
    machine
        .write(
            "~/.vscode/extensions/extensions.json",
            "[{\"identifier\":{\"id\":\"Rust-Lang.rust-analyzer\",\"uuid\":\"x\"},\"version\":\"0.4.1\",\"metadata\":{}}]",
        )
        .write("~/.cursor/extensions/ms-python.python-2024.1/package.json", "{\"publisher\":\"ms-python\",\"name\":\"python\",\"version\":\"2024.1\"}")
        .write("~/.cursor/extensions/.obsolete", "{}");
    assert_eq!(
        machine.listing(Manager::Vscode),
        [
            "ms-python.python 2024.1 explicit cursor",
            "rust-lang.rust-analyzer 0.4.1 explicit code"
        ]
    );
}

#[test]
fn plugins_of_vim_and_packages_of_emacs() {
    let machine = Machine::new();
    let id = "0123456789012345678901234567890123456789";
    let secret = ["me", ":", "x", "@"].concat();
    machine
        .write("~/.vim/pack/mine/start/fugitive/.git/config", format!("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://{secret}git.lan/fugitive.git\n[branch \"x\"]\n\turl = no\n"))
        .write("~/.vim/pack/mine/start/fugitive/.git/HEAD", "ref: refs/heads/master\n")
        .write("~/.vim/pack/mine/start/fugitive/.git/packed-refs", format!("# pack-refs\n{id} refs/heads/master\n"))
        .write("~/.local/share/nvim/lazy/telescope/.git/HEAD", format!("{id}\n"))
        .write("~/.local/share/nvim/lazy/evil/.git/HEAD", "ref: ../../../../../etc/passwd\n")
        .folder("~/.vim/plugged/plain")
        .folder("~/.emacs.d/elpa/magit-3.3.0")
        .folder("~/.emacs.d/elpa/archives")
        .write("~/.emacs.d/elpa/magit-3.3.0.signed", "");
    assert_eq!(
        machine.listing(Manager::Vim),
        [
            "evil  explicit".to_owned(),
            format!("fugitive {id} explicit https://git.lan/fugitive.git"),
            "plain  explicit".to_owned(),
            format!("telescope {id} explicit")
        ]
    );
    assert_eq!(machine.listing(Manager::Emacs), ["magit 3.3.0 unknown"]);
}
