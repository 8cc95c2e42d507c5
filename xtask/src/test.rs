//! `cargo xtask test`: every check and every test, in the order that fails fastest.

use crate::packages;
use crate::shell::{self, exists};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only what is quick: no lints, no torture, no engines but the embedded one.
    #[arg(long)]
    quick: bool,
    /// Instead of everything: the whole-server tests on one instance with PostgreSQL, Redis and SFTP, or on three of them behind a
    /// balancer.
    #[arg(long, value_name = "ENGINES")]
    engines: Option<Engines>,
    /// With `--engines`: only tests whose name contains one of these.
    #[arg(requires = "engines")]
    names: Vec<String>,
}

/// What the whole-server tests stand on; `embedded` is what they stand on otherwise.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Engines {
    Postgres,
    Cluster,
}

impl Engines {
    /// The value of `ENGINES_OF_TESTS`.
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Cluster => "cluster",
        }
    }
}

/// What is left out on other engines, by a part of its name, and why.
const EMBEDDED_ONLY: [(&str, &str); 7] = [
    ("demo::", "`saveguard demo` is embedded: it is there to be tried without anything else"),
    ("console_story::", "is told on the demo"),
    ("console_submissions::", "is told on the demo"),
    (
        "preserving::",
        "`saveguard backup` and `restore` are for the embedded ledger and refuse to run on PostgreSQL",
    ),
    ("mending", "mends from such a backup"),
    ("cli::a_folder_without_data_is_not_called_clean", "is about a folder without an embedded ledger"),
    ("cli::where_a_vault_should_be_mounted_nobody_makes_an_empty_one", "is about a local vault"),
];
/// Besides, with several instances.
const ONE_INSTANCE_ONLY: (&str, &str) = (
    "far_vault::saves_go_on_while_the_far_vault_is_away_and_are_delivered_when_it_is_back",
    "a depot is for one instance: what waits on the disk of one, the others cannot read",
);

/// Runs everything.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    packages::ensure()?;
    if let Some(engines) = arguments.engines {
        return run_on(engines, &arguments.names);
    }
    if !arguments.quick {
        shell::run("cargo", &["fmt", "--all", "--check"])?;
        shell::run("cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    }
    // Built once, here: a test that had to wait for it would be taken for one that hangs.
    shell::run("cargo", &["run", "--quiet", "--package", "test-stores"])?;
    if exists("cargo-nextest") {
        shell::run("cargo", &["nextest", "run", "--workspace", "--no-fail-fast"])?;
        shell::run("cargo", &["test", "--quiet", "--workspace", "--doc"])?;
    } else {
        shell::run("cargo", &["test", "--quiet", "--workspace", "--no-fail-fast"])?;
    }
    if !arguments.quick {
        run_on(Engines::Postgres, &[])?;
        run_on(Engines::Cluster, &[])?;
        shell::run("cargo", &["run", "--quiet", "--package", "torture", "--", "--short"])?;
    }
    Ok(())
}

/// The whole-server tests on other engines, narrowed by names.
fn run_on(engines: Engines, names: &[String]) -> anyhow::Result<()> {
    // The package is chosen among all: chosen by `-p` it would be built with other features, and anew.
    let mut arguments = if exists("cargo-nextest") {
        let only = ["-E", "package(saveguard) and binary(it)"];
        ["nextest", "run", "--workspace", "--test", "it", "--no-fail-fast"].into_iter().chain(only).collect()
    } else {
        vec!["test", "--quiet", "--package", "saveguard", "--test", "it", "--no-fail-fast"]
    };
    arguments.push("--");
    arguments.extend(names.iter().map(String::as_str));
    let one_instance = matches!(engines, Engines::Cluster).then_some(&ONE_INSTANCE_ONLY);
    for (name, _) in EMBEDDED_ONLY.iter().chain(one_instance) {
        arguments.extend(["--skip", name]);
    }
    shell::run_with("cargo", &arguments, &[("ENGINES_OF_TESTS", engines.name())])
}
