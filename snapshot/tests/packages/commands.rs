//! Differences, and the commands that would install what is missing.

use ingot_snapshot::packages::{Inventory, Manager};

use super::languages::go_program;
use super::machine::Machine;

/// The commands as a shell takes them.
fn shell(inventory: &Inventory, system: Option<Manager>) -> Vec<String> {
    inventory
        .install_commands(system)
        .commands
        .into_iter()
        .map(|command| command.shell)
        .collect()
}

#[test]
fn what_changed_is_told_by_manager() {
    let machine = Machine::full();
    let before = machine.inventory();
    assert!(before.diff(&before).is_empty());
    machine
        .write("var/lib/dpkg/status", "Package: vim\nStatus: install ok installed\nVersion: 2:9.2\n\nPackage: jq\nStatus: install ok installed\nVersion: 1.7\n")
        .write("~/.cargo/.crates2.json", "{\"installs\":{}}");
    let after = machine.inventory();
    let diff = before.diff(&after);
    assert_eq!(
        diff.managers.keys().collect::<Vec<_>>(),
        [&Manager::Apt, &Manager::Cargo]
    );
    let apt = &diff.managers[&Manager::Apt];
    assert_eq!(
        apt.added.iter().map(|package| &package.name).collect::<Vec<_>>(),
        ["jq"]
    );
    assert_eq!(apt.removed, []);
    assert_eq!(
        (
            apt.changed[0].before.version.as_str(),
            apt.changed[0].after.version.as_str()
        ),
        ("2:9.1", "2:9.2")
    );
    assert_eq!(diff.managers[&Manager::Cargo].removed[0].name, "bat");
    // The other way round everything is the other way round.
    let back = after.diff(&before);
    assert_eq!(back.managers[&Manager::Apt].removed, apt.added);
    // What one side could not read says nothing.
    let nothing = Inventory::default();
    assert!(!before.diff(&nothing).managers.contains_key(&Manager::Rpm));
}

#[test]
fn every_manager_gets_its_command() {
    let machine = Machine::full();
    machine
        .write("~/go/bin/tool", go_program("example.org/tool", "v1.2.3"))
        .write(
            "var/lib/flatpak/app/org.gimp.GIMP/x86_64/stable/active/deploy",
            b"flathub\0",
        );
    let mut inventory = machine.inventory();
    inventory
        .managers
        .retain(|manager, _| !manager.is_system() || *manager == Manager::Apt);
    assert_eq!(
        shell(&inventory, Some(Manager::Apt)),
        [
            "sudo apt-get install -- vim",
            "brew install --formula fd",
            "brew install --cask kitty",
            "flatpak install flathub org.gimp.GIMP//stable",
            "sudo snap install hello",
            "nix profile install 'nixpkgs#hello'",
            "cargo install --locked -- bat",
            "python3 -m pip install --user rich",
            "pipx install black",
            "uv tool install ruff",
            "npm install --global -- prettier",
            "go install example.org/tool@latest",
            "code --install-extension rust-lang.rust-analyzer",
        ]
    );
    let left_out = inventory.install_commands(Some(Manager::Apt)).left_out;
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(
        left_out[0].starts_with("vim fugitive: not a clone"),
        "{left_out:?}"
    );
}

#[test]
fn another_distribution_gets_the_names_with_a_note() {
    let machine = Machine::new();
    machine
        .write("var/lib/dpkg/status", "Package: fd-find\nStatus: install ok installed\nVersion: 9\n\nPackage: lib\nStatus: install ok installed\nVersion: 1\n")
        .write("var/lib/apt/extended_states", "Package: lib\nAuto-Installed: 1\n");
    let plan = machine.inventory().install_commands(Some(Manager::Pacman));
    assert_eq!(plan.commands.len(), 1);
    assert_eq!(plan.commands[0].shell, "sudo pacman -S --needed -- fd-find");
    assert_eq!(plan.commands[0].manager, Manager::Pacman);
    assert_eq!(
        plan.commands[0].note.as_deref(),
        Some("these are names of apt; pacman may know them by others")
    );
}

#[test]
fn what_is_there_is_not_installed_again() {
    let here = Machine::full();
    let there = Machine::new();
    there
        .write(
            "var/lib/pacman/local/vim-9-1/desc",
            "%NAME%\nvim\n\n%VERSION%\n9-1\n",
        )
        .write(
            "~/.cargo/.crates2.json",
            "{\"installs\":{\"bat 0.1.0 (registry+https://github.com/rust-lang/crates.io-index)\":{}}}",
        );
    let mut wanted = here.inventory();
    wanted
        .managers
        .retain(|manager, _| [Manager::Apt, Manager::Cargo, Manager::Npm].contains(manager));
    let missing = wanted.missing(&there.inventory(), Some(Manager::Pacman));
    assert_eq!(
        shell(&missing, Some(Manager::Pacman)),
        ["npm install --global -- prettier"]
    );
}

#[test]
fn names_from_databases_are_never_shell() {
    let machine = Machine::new();
    let evil = [
        "a'; rm -rf ~ #",
        "$(reboot)",
        "-rf",
        "two words",
        "b`id`",
        "\u{1b}[2J",
        "größe",
    ];
    let status: String = evil
        .iter()
        .map(|name| format!("Package: {name}\nStatus: install ok installed\nVersion: 1\n\n"))
        .collect();
    machine.write("var/lib/dpkg/status", status);
    let plan = machine.inventory().install_commands(Some(Manager::Apt));
    assert_eq!(
        plan.commands[0].shell,
        "sudo apt-get install -- '$(reboot)' 'b`id`' 'größe'"
    );
    assert_eq!(plan.left_out.len(), 4);
    assert!(
        plan.left_out
            .iter()
            .all(|line| !line.chars().any(char::is_control)),
        "{:?}",
        plan.left_out
    );
    // A shell sees the same words.
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!("printf '%s\\n' {}", plan.commands[0].shell))
        .output()
        .expect("a shell");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .collect::<Vec<_>>(),
        plan.commands[0].argv
    );
    assert_eq!(plan.commands[0].argv[4..], ["$(reboot)", "b`id`", "größe"]);
}

#[test]
fn long_lists_are_several_commands() {
    let machine = Machine::new();
    let status: String = (0..450)
        .map(|n| format!("Package: p{n}\nStatus: install ok installed\nVersion: 1\n\n"))
        .collect();
    machine.write("var/lib/dpkg/status", status);
    let counts: Vec<usize> = machine
        .inventory()
        .install_commands(None)
        .commands
        .iter()
        .map(|command| command.argv.len() - 4)
        .collect();
    assert_eq!(counts, [200, 200, 50]);
}

#[test]
fn work_trees_and_files_are_left_out() {
    let machine = Machine::new();
    machine
        .write("~/go/bin/tool", go_program("example.org/tool", "(devel)"))
        .write("~/.cargo/.crates2.json", "{\"installs\":{\"tool 0.1.0 (path+file:///home/me/tool)\":{},\"g 1.0.0 (git+https://git.lan/g?branch=x#0123)\":{}}}");
    let plan = machine.inventory().install_commands(None);
    assert_eq!(plan.commands.len(), 1);
    assert_eq!(
        plan.commands[0].shell,
        "cargo install --locked --git https://git.lan/g g"
    );
    assert_eq!(plan.left_out.len(), 2, "{:?}", plan.left_out);
}
