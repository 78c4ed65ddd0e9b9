//! The helper's process itself, spoken to as Git would, with a real store.

use ingot_testdata::repo::Format;

use super::world::{Said, World, text};

fn talk(world: &World, git_dir: Option<&std::path::Path>, input: &str) -> Said {
    let parameters = format!("'e2ee.key'='{}'", text(&world.key));
    let mut environment = vec![("GIT_CONFIG_PARAMETERS", parameters.as_str())];
    environment.extend(git_dir.map(|git_dir| ("GIT_DIR", text(git_dir))));
    world.helper_with(
        world.root(),
        &[&world.url(), text(&world.store)],
        &environment,
        input,
    )
}

#[test]
fn a_batch_that_ends_early_publishes_nothing() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let before = std::fs::read(world.store.join("HEAD")).unwrap();
    for input in [
        "list for-push\npush refs/heads/main:refs/heads/main\n",
        "list for-push\npush refs/heads/main:refs/heads/main\npush refs/heads/topic:refs/he",
        "list for-push\npush refs/heads/main:refs/heads/main\nnonsense\n\n",
    ] {
        let said = talk(&world, Some(&source.git_dir()), input).bad(&["git-remote-e2ee: "]);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert_eq!(said.out, "", "only the empty listing was answered");
        assert_eq!(std::fs::read(world.store.join("HEAD")).unwrap(), before);
    }
}

#[test]
fn listing_needs_no_repository_and_the_rest_says_so() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let main = source.git(&["rev-parse", "main"]);
    let said = talk(&world, None, "capabilities\noption object-format true\nlist\n\n").good();
    let expected = format!(
        "fetch\npush\noption\ncheck-connectivity\nobject-format\n\nok\n:object-format sha1\n\
         @refs/heads/main HEAD\n{main} refs/heads/main"
    );
    assert_eq!(said, expected);
    talk(&world, None, &format!("fetch {main} refs/heads/main\n\n")).bad(&["repository"]);
    talk(&world, None, "push :refs/heads/main\n\n").bad(&["repository"]);
}

#[test]
fn connectivity_is_confirmed_and_packs_are_kept_until_git_is_done() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    world.git(source.path(), &["push", "-q", "vault", "main"]).good();
    let main = source.git(&["rev-parse", "main"]);
    let inner = source.git(&["rev-parse", "main~2"]);
    let target = ingot_testdata::repo::Repo::empty(Format::Sha1);
    let fetch = format!("option check-connectivity true\nlist\nfetch {main} refs/heads/main\n\n\n");
    let said = talk(&world, Some(&target.git_dir()), &fetch).good();
    let locks: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("lock "))
        .collect();
    assert_eq!(locks.len(), 1, "{said}");
    assert!(locks[0].ends_with(".keep") && std::path::Path::new(locks[0]).is_file());
    assert!(said.contains("\nconnectivity-ok"), "{said}");
    // Nothing is imported again; an object inside is not proven to be complete by that.
    let again = talk(
        &world,
        Some(&target.git_dir()),
        &format!("option check-connectivity true\nfetch {inner} x\n\n\n"),
    );
    assert_eq!(again.good(), "ok");
    let absent = "1".repeat(40);
    talk(
        &world,
        Some(&target.git_dir()),
        &format!("fetch {absent} x\n\n\n"),
    )
    .bad(&[&absent]);
}

#[test]
fn a_push_answers_every_reference() {
    let world = World::new();
    let source = world.source("vault", Format::Sha1);
    let input = "list for-push\npush refs/heads/main:refs/heads/main\npush nothing:refs/heads/x\n\
                 push +main~1:refs/heads/y\npush :refs/heads/gone\npush main:refs/notes/n\n\n\n";
    let said = talk(&world, Some(&source.git_dir()), input).good();
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[0], "ok refs/heads/main");
    assert!(lines[1].starts_with("error refs/heads/x "), "{said}");
    assert_eq!(lines[2], "ok refs/heads/y");
    assert!(lines[3].starts_with("error refs/heads/gone "), "{said}");
    assert!(
        lines[4].starts_with("error refs/notes/n unsupported ref namespace"),
        "{said}"
    );
    assert_eq!(lines.len(), 5);
    assert_eq!(world.names(), ["refs/heads/main", "refs/heads/y"]);
}

#[test]
fn without_arguments_it_says_what_it_is() {
    let world = World::new();
    let said = world.helper_with(world.root(), &[], &[], "");
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("git-e2ee"));
}
