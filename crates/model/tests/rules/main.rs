//! scratch
mod collecting;
mod ending;
mod host;
mod ledger;
mod moves;
mod promises;
mod search;
mod server;
mod world;

use model::Guards;
use search::*;
use world::*;

fn with_one_inside(budget: Budget) -> World {
    let mut world = World::new(Budget { keys: budget.keys + 1, joins: budget.joins + 1, ..budget });
    let setting = setting(Guards::ALL);
    moves::make(&mut world, &setting, moves::Move::Open);
    moves::make(&mut world, &setting, moves::Move::Join(0));
    world
}

fn setting(guards: Guards) -> Setting {
    Setting {
        guards,
        adapters: Adapters { acknowledge_every_zero: std::env::var("SJ").is_ok(), look_before_deleting: std::env::var("LB").is_ok(), keep_the_first_report: std::env::var("NT").is_ok(), collect_only_if_nothing_came: std::env::var("CC").is_ok(), confirm_retirement: std::env::var("CR").is_ok() },
        retries: 1,
        somebody_opens: true,
        recovery_is_eager: std::env::var("ER").is_ok(),
        repeats_linger: std::env::var("RL").is_ok(),
    }
}

fn run(name: &str, start: World, setting: Setting) {
    let now = std::time::Instant::now();
    let outcome = search(start, &setting);
    println!("{name}: {} states, depth {}, {:?}", outcome.states, outcome.depth, now.elapsed());
    if let Some(v) = outcome.violation {
        println!("{v}");
    }
}


fn env_budget() -> Budget {
    let mut b = Budget::default();
    for part in std::env::var("B").unwrap_or_default().split(',').filter(|p| !p.is_empty()) {
        let (name, n) = part.split_once('=').unwrap();
        let n: u8 = n.parse().unwrap();
        match name {
            "keys" => b.keys = n, "joins" => b.joins = n, "ch" => b.changes = n, "fs" => b.force_saves = n, "au" => b.authors = n, "ties" => b.ties = n,
            "loss" => b.losses = n, "dup" => b.duplicates = n, "to" => b.timeouts = n, 
            "hc" => b.host_crashes = n, "sc" => b.server_crashes = n, "fail" => b.failures = n, "dam" => b.damages = n,
            "win" => b.windows = n, "exp" => b.expiries = n, "sw" => b.sweeps = n, "am" => b.amnesias = n,
            _ => panic!("{name}"),
        }
    }
    b
}

#[test]
fn scratch() {
    let mut s = setting(std::env::var("M").map_or(Guards::ALL, |m| Guards::without(&m).unwrap()));
    s.somebody_opens = std::env::var("NOOPEN").is_err();
    s.retries = std::env::var("R").map_or(1, |r| r.parse().unwrap());
    run("run", with_one_inside(env_budget()), s);
}
