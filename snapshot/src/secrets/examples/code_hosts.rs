//! Code hosts and package registries.

use super::{Example, HEX, LOWER, MIXED, base64, example, noise, uuid};

pub(super) fn all() -> Vec<Example> {
    let docker = data_encoding::BASE64.encode(format!("me:{}", noise(MIXED, 20)).as_bytes());
    vec![
        example(
            "github-token",
            [
                format!("gh{}_{}", "p", noise(MIXED, 36)),
                format!("export X=gh{}_{}\n", "o", noise(MIXED, 40)),
                format!("\"\\ngh{}_{}\"", "s", noise(MIXED, 36)),
            ],
            [
                "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
                format!("ghp_{}", noise(MIXED, 20)),
                format!("aghp_{}", noise(MIXED, 36)),
            ],
        ),
        example(
            "github-fine-grained-token",
            [format!(
                "github_{}_{}_{}",
                "pat",
                noise(MIXED, 22),
                noise(MIXED, 59)
            )],
            [
                "github_pat_".to_owned(),
                format!("github_pat_{}", noise(MIXED, 22)),
            ],
        ),
        example(
            "gitlab-token",
            [
                format!("gl{}-{}", "pat", noise(MIXED, 20)),
                format!("gl{}-{}", "rt", noise(MIXED, 20)),
            ],
            [
                "glpat-xxxxxxxxxxxxxxxxxxxx".to_owned(),
                format!("glpat-{}", noise(MIXED, 12)),
            ],
        ),
        example(
            "gitlab-runner-registration",
            [format!("GR{}{}", "1348941", noise(MIXED, 20))],
            ["GR1348941".to_owned(), format!("GR1348941{}", noise(MIXED, 5))],
        ),
        example(
            "bitbucket-token",
            [
                format!("AT{}{}", "BB", noise(MIXED, 32)),
                format!("AT{}{}", "ATT3", noise(MIXED, 186)),
            ],
            ["ATBB", "SEATBBELT"],
        ),
        example(
            "npm-token",
            [format!("npm{}{}", "_", noise(MIXED, 36))],
            [
                "npm_config_user_agent=npm/10.0.0 node/v20",
                "npm_package_dependencies_with_a_long_name_indeed",
            ],
        ),
        example(
            "npmrc-auth",
            [
                format!("//registry.example.org/:_auth{}={}", "Token", uuid()),
                format!("//registry.example.org/:_{}={}", "password", base64(12)),
            ],
            [
                "//registry.example.org/:_authToken=${NPM_TOKEN}",
                "require_auth=true",
                "always-auth=true",
            ],
        ),
        example(
            "npmrc-auth",
            [format!(
                "_au{}={}",
                "th",
                data_encoding::BASE64.encode(format!("me:{}", noise(MIXED, 12)).as_bytes())
            )],
            [
                "_auth=<base64 of name and password>",
                "this._auth = authenticate1",
                "self._auth = authentication_of_somebody",
            ],
        ),
        example(
            "pypi-token",
            [format!("pypi-AgEIc{}{}", "HlwaS5vcmc", noise(MIXED, 120))],
            ["pypi-AgEIcHlwaS5vcmc", "pypi-server-1.0"],
        ),
        example(
            "crates-io-token",
            [format!("ci{}{}", "o", noise(MIXED, 32))],
            [
                format!("precio{}", noise(MIXED, 32)),
                "cioppino".to_owned(),
                format!("cio{}", noise(MIXED, 33)),
            ],
        ),
        example(
            "rubygems-token",
            [format!("rubygems{}{}", "_", noise(HEX, 48))],
            ["rubygems_version: 3.4.1", "rubygems_abcdef"],
        ),
        example(
            "nuget-key",
            [format!("oy{}{}", "2", noise(LOWER, 43))],
            ["oy2abc".to_owned(), format!("toy2{}", noise(LOWER, 43))],
        ),
        example(
            "docker-hub-token",
            [format!("dckr_{}_{}", "pat", noise(MIXED, 27))],
            ["dckr_pat_<token>", "dckr_pat_xxxxxxxxxxxxxxxxxxxxxxxxxxx"],
        ),
        example(
            "docker-auth",
            [
                format!(
                    "{{\"auths\": {{\"registry.example.org\": {{\"au{}\": \"{docker}\"}}}}}}",
                    "th"
                ),
                format!("\"identity{}\": \"{}\"", "token", noise(MIXED, 40)),
            ],
            [
                "\"auth\": \"optional-for-reading\"".to_owned(),
                "\"auth\": \"\"".to_owned(),
                format!("\"auth\": \"{}\"", base64(12)),
            ],
        ),
        example(
            "artifactory-token",
            [
                format!("AK{}{}", "Cp", noise(MIXED, 69)),
                format!("cmVm{}{}", "dGtuOj", noise(MIXED, 54)),
            ],
            [format!("AKCp{}", noise(MIXED, 20)), "cmVmdGtuOjAx".to_owned()],
        ),
        example(
            "sourcegraph-token",
            [format!("sg{}_{}", "p", noise(HEX, 40))],
            ["sgp_local_", "sgp_0123456789012345678901234567890123456789"],
        ),
        example(
            "circleci-token",
            [format!("CCI{}_{}_{}", "PAT", noise(MIXED, 22), noise(HEX, 40))],
            ["CCIPAT_"],
        ),
        example(
            "buildkite-token",
            [format!("bk{}_{}", "ua", noise(LOWER, 40))],
            ["bkua_test"],
        ),
        example(
            "build-service-token",
            [
                format!("CODECOV_{}={}", "TOKEN", uuid()),
                format!("coveralls_repo_{}: {}", "token", noise(MIXED, 33)),
            ],
            [
                "CODECOV_TOKEN=${{ secrets.CODECOV }}",
                "codecov: token: <upload token>",
            ],
        ),
    ]
}
