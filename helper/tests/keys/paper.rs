//! Copies and recovery sheets, there and back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ingot_helper::keys::age;
use ingot_helper::protocol::key_file;

use super::protect::{Askpass, PASSPHRASE, protect};
use super::world::{World, text};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_exported_copy_is_imported() {
    let world = World::new();
    let key = key_file::read(&world.key).unwrap();
    let (copy, back) = (world.path("copy.age"), world.path("new/back.key.json"));
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    let e2ee = |args: &[&str]| world.e2ee_with(world.root(), args, &[askpass.variable()]);
    let export = [
        "key",
        "export",
        "--key",
        text(&world.key),
        "--output",
        text(&copy),
    ];
    e2ee(&export).good();
    assert_eq!(askpass.questions().len(), 2, "a new passphrase");
    assert!(age::is_age(&std::fs::read(&copy).unwrap()));
    assert_eq!(mode(&copy), 0o600);
    e2ee(&export).bad(&["exists already"]);
    assert!(askpass.questions().is_empty(), "nobody is asked in vain");

    // From a disk that knows no modes.
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let import = ["key", "import", text(&copy), "--output", text(&back)];
    let said = e2ee(&import).good();
    assert!(
        said.contains(&key.id().to_string()) && said.contains("protected"),
        "{said}"
    );
    assert_eq!(mode(&back), 0o600);
    e2ee(&import).bad(&["exists already"]);
    e2ee(&["key", "change-passphrase", "--remove", "--key", text(&back)]).good();
    assert_eq!(*key_file::read(&back).unwrap().to_json(), *key.to_json());

    // A protected key keeps its passphrase in the copy.
    protect(&world.key);
    askpass.questions();
    let said = e2ee(&["key", "export", "--key", text(&world.key), "--output", "-"]).good();
    assert_eq!(askpass.questions().len(), 1);
    assert!(said.starts_with("-----BEGIN AGE ENCRYPTED FILE-----\n"), "{said}");
    let file = age::File::parse(said.as_bytes()).unwrap();
    assert_eq!(*file.open(&PASSPHRASE.into()).unwrap(), *key.to_json());
}

#[test]
fn what_is_no_copy_is_not_imported() {
    let world = World::new();
    let (source, output) = (world.path("source"), world.path("output.json"));
    let import = |more: &[&str]| {
        let mut args = vec!["key", "import", text(&source), "--output", text(&output)];
        args.extend_from_slice(more);
        let said = world.e2ee(world.root(), &args);
        assert!(said.ok || !output.exists());
        said
    };
    import(&[]).bad(&["there is no file"]);
    for content in [
        "",
        "S1 abandon",
        "{}",
        "-----BEGIN AGE ENCRYPTED FILE-----\nx",
        &"x".repeat(20_000),
    ] {
        std::fs::write(&source, content).unwrap();
        import(&[]).bad(&[text(&source)]);
        import(&["--words"]).bad(&[]);
    }
    std::fs::write(&source, [0xff; 10]).unwrap();
    import(&["--words"]).bad(&["is not text"]);
    // A copy without a passphrase that everybody can read comes with a word of warning.
    std::fs::copy(&world.key, &source).unwrap();
    std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o644)).unwrap();
    import(&["--device", "00000000"]).bad(&["nothing was imported"]);
    let id = key_file::read(&world.key).unwrap().id().to_string();
    let said = import(&["--device", &id[..10]]);
    assert!(said.err.contains("others can read"), "{}", said.err);
    said.good();
    let without = ["key", "import", "--output", "x.json"];
    assert_eq!(world.e2ee(world.root(), &without).code, Some(2));
}

#[test]
fn a_recovery_sheet_is_read_back() {
    let world = World::new();
    let key = key_file::read(&world.key).unwrap();
    let backup = ["key", "backup", "--key", text(&world.key)];
    let said = world.e2ee(world.root(), &backup).good();
    assert!(
        said.contains(&key.id().to_string()) && said.contains('█'),
        "{said}"
    );
    let sheet = world.path("sheet.txt");
    std::fs::write(&sheet, &said).unwrap();
    let import = |source: &Path, name: &str| {
        let output = world.path(name);
        let args = [
            "key",
            "import",
            "--words",
            text(source),
            "--output",
            text(&output),
        ];
        world.e2ee(world.root(), &args)
    };
    import(&sheet, "back.json").good();
    assert_eq!(
        *key_file::read(&world.path("back.json")).unwrap().to_json(),
        *key.to_json()
    );
    assert_eq!(mode(&world.path("back.json")), 0o600);

    for name in ["sheet.html", "other.txt"] {
        let file = world.path(name);
        let mut args = backup.to_vec();
        args.extend(["--output", text(&file)]);
        let said = world.e2ee(world.root(), &args).good();
        assert!(said.contains("remove the file"), "{said}");
        assert_eq!(mode(&file), 0o600);
        world.e2ee(world.root(), &args).bad(&["exists already"]);
        import(&file, &format!("{name}.json")).good();
    }
    let svg = world.path("sheet.svg");
    world
        .e2ee(world.root(), &[&backup[..], &["--output", text(&svg)]].concat())
        .good();
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg"));
    assert_eq!(
        world
            .e2ee(world.root(), &[&["--json"], &backup[..]].concat())
            .code,
        Some(2)
    );

    // One wrong word.
    let row = said.lines().find(|line| line.starts_with("W3 ")).unwrap();
    let mut words: Vec<&str> = row.split_whitespace().collect();
    words[4] = "qwertz";
    std::fs::write(&sheet, said.replace(row, &words.join(" "))).unwrap();
    import(&sheet, "wrong.json").bad(&["row W3, word 4:", "no such word"]);
    assert!(!world.path("wrong.json").exists());
    // The sheet of another device.
    let id = key.id().to_string();
    let turned: String = id.chars().rev().collect();
    std::fs::write(&sheet, said.replace(&id, &turned)).unwrap();
    import(&sheet, "wrong.json").bad(&["the sheet is for device"]);
}

#[test]
fn a_protected_sheet_needs_its_passphrase() {
    let world = World::new();
    let key = key_file::read(&world.key).unwrap();
    protect(&world.key);
    let askpass = Askpass::new(&world, "askpass", PASSPHRASE);
    let backup = ["key", "backup", "--wrapped", "--key", text(&world.key)];
    let said = world
        .e2ee_with(world.root(), &backup, &[askpass.variable()])
        .good();
    assert_eq!(askpass.questions().len(), 1);
    let start = said.find("-----BEGIN").unwrap();
    let end = said.find("-----END AGE ENCRYPTED FILE-----").unwrap() + 32;
    let source = world.path("typed.age");
    std::fs::write(&source, &said[start..end]).unwrap();
    let import = ["key", "import", text(&source), "--output", "back.json"];
    assert_eq!(world.e2ee(world.root(), &import).code, Some(15));
    world
        .e2ee_with(world.root(), &import, &[askpass.variable()])
        .good();
    let content = key_file::load(&world.path("back.json")).unwrap();
    let file = age::File::parse(&content).unwrap();
    assert_eq!(*file.open(&PASSPHRASE.into()).unwrap(), *key.to_json());
}
