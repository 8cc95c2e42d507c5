//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::cluster::RedisFate;
use crate::world::VaultKind;

/// Which way through the service is tortured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flow {
    /// Documents that are edited and saved.
    Documents,
    /// Workbooks that are handed in and become records.
    Submissions,
}

impl Flow {
    /// As on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Documents => "documents",
            Self::Submissions => "submissions",
        }
    }

    /// Whether a step of the source lies on this way.
    pub(crate) fn has(self, step: &str) -> bool {
        let is_of_submissions = step.starts_with("log.") || step.starts_with("submission.");
        is_of_submissions == (self == Self::Submissions)
    }
}

/// Where the ledger is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// In the data folder of one service.
    Sqlite,
    /// On a PostgreSQL that several instances share.
    Postgres,
}

/// Kills the real service at every step under real load, and checks every promise from outside.
///
/// The service runs as a process of its own, a stand-in Document Server plays its editors, and everything the service
/// keeps is held against what that server accepted, sent and was answered. Exit code 0: nothing was lost, damaged,
/// duplicated or stuck.
#[derive(Debug, Clone, Parser)]
#[command(
    max_term_width = 110,
    after_help = "\
Examples:
  torture --kills 1000 --seed 7              a long run
  torture --kills 200 --power-loss           every kill takes the power with it
  torture --flow submissions --kills 60      workbooks instead of documents
  torture --vault sftp --kills 300           vault and published tree on a storage server that is killed too
  torture --vault s3 --outage 60             the storage is away for a minute under load
  torture --instances 3 --engine postgres --kills 500
                                             three instances behind a balancer, engines and network fail, too
  torture --instances 3 --engine postgres --redis cut
                                             the same, and Redis is switched off in the middle
  torture --instances 3 --engine postgres --flow submissions
                                             workbooks that one instance takes and another finishes
  torture --instances 3 --engine postgres --seed1 10000
                                             a save and a force save at the same moment, at two instances
  torture --instances 3 --engine postgres --rolling 3
                                             all instances restarted in turn under load, three times
  torture --mutant no-order-guard            one guard removed: must be found out
  torture --all-mutants                      every guard removed in turn, and none
  torture --short                            what CI runs, in a few minutes"
)]
pub(crate) struct Arguments {
    /// What is tortured.
    #[arg(long, value_enum, default_value_t = Flow::Documents, value_name = "FLOW")]
    pub(crate) flow: Flow,
    /// Where blobs and the published tree are. A far vault has a storage server of its own in each round, which is killed and frozen
    /// like the service; saves may wait in the depot in every second round.
    #[arg(long, value_enum, default_value_t = VaultKind::Local, value_name = "VAULT")]
    pub(crate) vault: VaultKind,
    /// Instead of kills: the storage of a far vault is away for so long under load, killed or frozen, with the depot forbidden and
    /// allowed. Four rounds.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["kills", "mutant", "all_mutants", "short"])]
    pub(crate) outage: Option<u64>,
    /// How many instances there are, behind a balancer. More than one needs `--engine postgres`.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) instances: usize,
    /// Where the ledger is. A PostgreSQL of its own is started for it; the vault is a folder that all instances share.
    #[arg(long, value_enum, default_value_t = Engine::Sqlite, value_name = "ENGINE")]
    pub(crate) engine: Engine,
    /// What becomes of Redis, with `--engine postgres`.
    #[arg(long, value_enum, default_value_t = RedisFate::On, value_name = "FATE")]
    pub(crate) redis: RedisFate,
    /// Instead of kills: so many times a save to one instance and a force save to another at the same moment.
    #[arg(long, value_name = "TIMES", conflicts_with_all = ["rolling", "all_mutants", "short"])]
    pub(crate) seed1: Option<u64>,
    /// Instead of kills: stop and start all instances one after the other under load, so many times.
    #[arg(long, value_name = "TIMES", conflicts_with_all = ["all_mutants", "short"])]
    pub(crate) rolling: Option<u64>,
    /// How often the service is killed.
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(crate) kills: u64,
    /// Decides everything that is left to chance.
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub(crate) seed: u64,
    /// Print one line of JSON at the end: seed, kills, storage_kills, lost, damaged, duplicated, stuck.
    #[arg(long)]
    pub(crate) json: bool,
    /// Remove one guard of the service. The run ends at the first finding; exit code 1 says that there was one.
    #[arg(long, value_name = "NAME")]
    pub(crate) mutant: Option<String>,
    /// Every kill takes the power with it: what was not flushed to the disk is gone.
    #[arg(long)]
    pub(crate) power_loss: bool,
    /// Documents that are edited at the same time in one round.
    #[arg(long, default_value_t = 6, value_name = "D")]
    pub(crate) documents: usize,
    /// Rounds that run side by side.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) parallel: usize,
    /// List the guards that can be removed.
    #[arg(long, conflicts_with_all = ["all_mutants", "short"])]
    pub(crate) list_mutants: bool,
    /// Remove every guard in turn; each must be found out, and the service with all its guards must be clean.
    #[arg(long, conflicts_with_all = ["mutant", "short"])]
    pub(crate) all_mutants: bool,
    /// The form for CI: 25 kills, a few with power loss, in mild weather; some kills of submissions and of three instances; five mutants.
    #[arg(long, conflicts_with = "mutant")]
    pub(crate) short: bool,
    /// Keep the folders of all rounds here. Those with findings are always kept, if not here then in a temporary folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
    /// The service to torture, built with the feature `torture`. Without this it is built first.
    #[arg(long, value_name = "PATH")]
    pub(crate) server: Option<PathBuf>,
    /// Play only this round of the run, to see a finding again.
    #[arg(long, value_name = "ROUND")]
    pub(crate) only_round: Option<u64>,
}
