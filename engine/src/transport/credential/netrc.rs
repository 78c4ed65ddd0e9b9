//! `~/.netrc`, which the HTTP library of Git reads (curl's CURLOPT_NETRC).

use std::path::PathBuf;

use zeroize::Zeroizing;

use super::{Credential, Realm};
use crate::transport::options::Options;

/// What is read of it.
const LONGEST: u64 = 1 << 20;

/// The account for a host, if the file has one: that of the user whom the address names, or the first.
pub(super) fn look_up(realm: &Realm, options: &Options) -> Option<Credential> {
    let home = PathBuf::from(options.environment().variable("HOME")?);
    let path = home.join(if cfg!(windows) { "_netrc" } else { ".netrc" });
    if std::fs::metadata(&path).ok()?.len() > LONGEST {
        return None;
    }
    let text = Zeroizing::new(std::fs::read_to_string(path).ok()?);
    let (login, password) = find(&text, &realm.place.host, realm.user.as_deref())?;
    Some(Credential {
        username: Some(login),
        password: Some(password),
        ..Credential::of(realm)
    })
}

fn find(text: &str, host: &str, user: Option<&str>) -> Option<(String, Zeroizing<String>)> {
    let mut entry = Entry::default();
    let mut tokens = Tokens(text);
    while let Some(token) = tokens.next() {
        match token.as_str() {
            "machine" | "default" => {
                if let Some(found) = entry.found(user) {
                    return Some(found);
                }
                entry = Entry {
                    applies: token.as_str() == "default"
                        || tokens.next().is_some_and(|name| name.eq_ignore_ascii_case(host)),
                    ..Entry::default()
                };
            }
            "login" => entry.login = tokens.next(),
            "password" => entry.password = tokens.next(),
            "account" => drop(tokens.next()),
            "macdef" => tokens.skip_macro(),
            _ => {}
        }
    }
    entry.found(user)
}

#[derive(Default)]
struct Entry {
    applies: bool,
    login: Option<Zeroizing<String>>,
    password: Option<Zeroizing<String>>,
}

impl Entry {
    fn found(&mut self, user: Option<&str>) -> Option<(String, Zeroizing<String>)> {
        if !self.applies {
            return None;
        }
        let login = match (&self.login, user) {
            (Some(login), Some(user)) if login.as_str() != user => return None,
            (Some(login), _) => login.to_string(),
            (None, user) => user?.to_owned(),
        };
        Some((login, self.password.take()?))
    }
}

/// Words between white space; one in quotes may have some, and escapes.
struct Tokens<'a>(&'a str);

impl Tokens<'_> {
    fn skip_macro(&mut self) {
        self.0 = self
            .0
            .split_once("\n\n")
            .or_else(|| self.0.split_once("\n\r\n"))
            .map_or("", |(_, rest)| rest);
    }
}

impl Iterator for Tokens<'_> {
    type Item = Zeroizing<String>;

    fn next(&mut self) -> Option<Zeroizing<String>> {
        let mut rest = self.0.trim_start();
        while rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        }
        if rest.is_empty() {
            self.0 = rest;
            return None;
        }
        let mut word = Zeroizing::new(String::new());
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            word.push_str(&rest[..end]);
            self.0 = &rest[end..];
            return Some(word);
        };
        let mut chars = quoted.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => word.extend(chars.next()),
                c => word.push(c),
            }
        }
        self.0 = chars.as_str();
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_host_and_user() {
        let text = "# mine\nmachine one.example login alice password word\nmacdef init\nmachine x\n\n\
                    machine Two.example\n  login bob\n  password \"two \\\" words\"\n\
                    machine two.example login carol password third\nmachine three.example password alone\n\
                    default login anonymous password guest\n";
        let find =
            |host, user| find(text, host, user).map(|(login, word)| format!("{login}:{}", word.as_str()));
        assert_eq!(find("one.example", None).as_deref(), Some("alice:word"));
        assert_eq!(find("two.example", None).as_deref(), Some("bob:two \" words"));
        assert_eq!(find("two.example", Some("carol")).as_deref(), Some("carol:third"));
        assert_eq!(find("three.example", Some("dave")).as_deref(), Some("dave:alone"));
        assert_eq!(find("four.example", None).as_deref(), Some("anonymous:guest"));
        assert_eq!(find("one.example", Some("bob")), None);
    }

    #[test]
    fn nonsense_is_no_account() {
        for text in [
            "",
            "machine",
            "machine a login",
            "machine a login \"x",
            "default",
            "macdef x",
            "#",
        ] {
            assert!(find(text, "a", None).is_none(), "{text}");
        }
    }
}
