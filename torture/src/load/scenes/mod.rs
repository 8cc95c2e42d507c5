//! The scenes, each about something that goes wrong in real installations. Which guard of the service a scene is meant
//! to lean on stands beside it; the mutants prove that it does.
//!
//! A scene that cannot go on simply ends: its editors are then lost like closed tabs.

mod everyday;
mod failing;
mod racing;
mod stale;

use super::play::Play;
use crate::dice::Dice;
use crate::world::Weather;

/// A scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    /// One user edits, saves now and then, leaves.
    Solo,
    /// Two users at once.
    Pair,
    /// Somebody only looks.
    Glance,
    /// 1-4-1-2: gone without a change, back on the same key, while another came.
    Comeback,
    /// Reopened within the save delay.
    SoonBack,
    /// Reopened while a final save is repeated.
    BackInRetry,
    /// 6-6-2 with slow downloads.
    Flurry,
    /// A 6 that arrives after the 2.
    LateCheckpoint,
    /// A callback that a proxy sends again, later.
    Echo,
    /// Somebody opens while the final save is being stored.
    Barrier,
    /// Callbacks and answers that are late, lost or doubled.
    RoughRoad,
    /// A conversion that fails.
    NoResult,
    /// A download that fails.
    BadDownload,
    /// An old tab goes on after its session was saved.
    Fork,
    /// A form is submitted.
    Form,
    /// A 6 that arrives after the next one, seconds apart.
    SpacedCheckpoints,
    /// A save that takes so long that an old tab revives the key.
    Revival,
    /// Downloads fail until the link is dead.
    DeadLink,
    /// An editor freezes and is found dead.
    Frozen,
}

const SHORT: [(u64, Scene); 15] = [
    (10, Scene::Solo),
    (8, Scene::Pair),
    (3, Scene::Glance),
    (7, Scene::Comeback),
    (6, Scene::SoonBack),
    (7, Scene::BackInRetry),
    (7, Scene::Flurry),
    (7, Scene::LateCheckpoint),
    (7, Scene::Echo),
    (7, Scene::Barrier),
    (8, Scene::RoughRoad),
    (7, Scene::NoResult),
    (9, Scene::BadDownload),
    (8, Scene::Fork),
    (2, Scene::Form),
];

const LONG: [(u64, Scene); 4] =
    [(6, Scene::Revival), (2, Scene::SpacedCheckpoints), (1, Scene::Frozen), (1, Scene::DeadLink)];

impl Scene {
    /// A scene of a second or so.
    pub(crate) fn short(dice: &mut Dice, weather: Weather) -> Self {
        Self::draw(dice, weather, &SHORT)
    }

    /// A scene of several seconds, which a kill would spoil.
    pub(crate) fn long(dice: &mut Dice, weather: Weather) -> Self {
        Self::draw(dice, weather, &LONG)
    }

    fn draw(dice: &mut Dice, weather: Weather, scenes: &[(u64, Self)]) -> Self {
        loop {
            let scene = *dice.weighted(scenes);
            if weather == Weather::Rough || !scene.is_rough() {
                return scene;
            }
        }
    }

    fn is_rough(self) -> bool {
        use Scene::{BackInRetry, BadDownload, DeadLink, NoResult, Revival, RoughRoad};
        matches!(self, BackInRetry | BadDownload | DeadLink | NoResult | Revival | RoughRoad)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Pair => "pair",
            Self::Glance => "glance",
            Self::Comeback => "comeback",
            Self::SoonBack => "soon-back",
            Self::BackInRetry => "back-in-retry",
            Self::Flurry => "flurry",
            Self::LateCheckpoint => "late-checkpoint",
            Self::Echo => "echo",
            Self::Barrier => "barrier",
            Self::RoughRoad => "rough-road",
            Self::NoResult => "no-result",
            Self::BadDownload => "bad-download",
            Self::Fork => "fork",
            Self::Form => "form",
            Self::SpacedCheckpoints => "spaced-checkpoints",
            Self::Revival => "revival",
            Self::DeadLink => "dead-link",
            Self::Frozen => "frozen",
        }
    }

    pub(crate) async fn play(self, play: &mut Play) -> Option<()> {
        match self {
            Self::Solo => everyday::solo(play).await,
            Self::Pair => everyday::pair(play).await,
            Self::Glance => everyday::glance(play).await,
            Self::Comeback => everyday::comeback(play).await,
            Self::SoonBack => everyday::soon_back(play).await,
            Self::Form => everyday::form(play).await,
            Self::Frozen => everyday::frozen(play).await,
            Self::Flurry => racing::flurry(play).await,
            Self::LateCheckpoint => racing::late_checkpoint(play).await,
            Self::SpacedCheckpoints => racing::spaced_checkpoints(play).await,
            Self::Echo => racing::echo(play).await,
            Self::Barrier => racing::barrier(play).await,
            Self::BackInRetry => failing::back_in_retry(play).await,
            Self::RoughRoad => failing::rough_road(play).await,
            Self::NoResult => failing::no_result(play).await,
            Self::BadDownload => failing::bad_download(play).await,
            Self::DeadLink => failing::dead_link(play).await,
            Self::Fork => stale::fork(play).await,
            Self::Revival => stale::revival(play).await,
        }
    }
}
