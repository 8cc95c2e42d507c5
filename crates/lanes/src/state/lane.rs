//! One key's line: who waits, who still prepares, who has the turn, and who may have it next.
//!
//! Guarantees: at most one task has the turn; turns are taken in order of arrival, except that a ready task may
//! pass predecessors that still prepare once its own patience, or that of a ready one behind it, is over. Whoever
//! can have the turn after a change either made the change itself or is named to be woken.
//! Does not bound the line and does not know its key: that is the shard's part.

use std::collections::VecDeque;
use std::task::Waker;

use tokio::time::Instant;

/// Names one task in its shard. Ids grow in order of arrival and are never used twice.
pub(crate) type TaskId = u64;

/// The line of one key.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The task that has the turn. It is not in `line`, so a lane with one task needs no memory of its own.
    turn: Option<Holder>,
    /// Everybody else, in order of arrival, hence in order of id.
    line: Line,
}

/// Those who wait. Most lanes never have any, and are smaller for it: lanes move between cores all the time.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "one word in the lane instead of four")]
struct Line(Option<Box<VecDeque<Place>>>);

#[derive(Debug)]
struct Holder {
    id: TaskId,
    arrived: Instant,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Place {
    id: TaskId,
    arrived: Instant,
    /// When it may pass those before it that still prepare. `None` while it prepares itself.
    may_pass_at: Option<Instant>,
    /// How to reach it; known once it had to wait for something.
    waker: Option<Waker>,
}

/// Whether a task may run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Turn {
    Yours,
    /// Not before somebody leaves; then it is woken.
    Later,
    /// The turn is free, but somebody before it still prepares: ask again then, or when woken.
    Patience {
        until: Instant,
    },
}

/// How many tasks are in which part, and when the oldest of them arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) waiting: usize,
    pub(crate) preparing: usize,
    pub(crate) finishing: usize,
    pub(crate) oldest: Option<Instant>,
}

impl Lane {
    /// Takes in a task that has nothing to prepare. The answer is `Yours` or `Later`.
    pub(crate) fn enter_ready(&mut self, id: TaskId, now: Instant, may_pass_at: Instant) -> Turn {
        if self.is_idle() {
            self.turn = Some(Holder { id, arrived: now, waker: None });
            return Turn::Yours;
        }
        self.line.push_back(Place { id, arrived: now, may_pass_at: Some(may_pass_at), waker: None });
        Turn::Later
    }

    /// Takes in a task whose first part has only begun.
    pub(crate) fn enter_preparing(&mut self, id: TaskId, now: Instant) {
        self.line.push_back(Place { id, arrived: now, may_pass_at: None, waker: None });
    }

    /// The first part of a task is done. It has to ask for its turn now.
    pub(crate) fn become_ready(&mut self, id: TaskId, may_pass_at: Instant) {
        let Some(index) = self.line.index_of(id) else { return };
        // Those behind it cannot pass it any more, so it must not be more patient than they are.
        let behind = self.line.iter().skip(index + 1).filter_map(|place| place.may_pass_at);
        let patience = behind.chain([may_pass_at]).min();
        if let Some(place) = self.line.get_mut(index) {
            place.may_pass_at = patience;
        }
    }

    /// Gives a ready task the turn if it may have it, or else remembers how to wake it.
    pub(crate) fn ask(&mut self, id: TaskId, now: Instant, waker: &Waker) -> Turn {
        if self.has_turn(id) {
            return Turn::Yours;
        }
        let mut answer = Turn::Later;
        if self.turn.is_none()
            && let Some((index, first, until)) = self.first_ready()
            && first == id
        {
            if index == 0 || now >= until {
                self.turn = self.line.remove(index).map(Holder::from);
                return Turn::Yours;
            }
            answer = Turn::Patience { until };
        }
        self.hear(id, waker);
        answer
    }

    /// Remembers how to wake a task.
    pub(crate) fn hear(&mut self, id: TaskId, waker: &Waker) {
        match &mut self.turn {
            Some(holder) if holder.id == id => holder.waker = Some(waker.clone()),
            _ => {
                let index = self.line.index_of(id);
                if let Some(place) = index.and_then(|index| self.line.get_mut(index)) {
                    place.waker = Some(waker.clone());
                }
            }
        }
    }

    /// A task is done, failed or dropped. Whoever is returned has to be woken, to ask for its turn.
    pub(crate) fn leave(&mut self, id: TaskId) -> Option<Waker> {
        if self.has_turn(id) {
            self.turn = None;
        } else if let Some(index) = self.line.index_of(id) {
            self.line.remove(index);
        }
        if self.turn.is_some() {
            return None;
        }
        // One that has no waker was never polled since it got ready, and will ask by itself.
        let (index, ..) = self.first_ready()?;
        self.line.get_mut(index)?.waker.take()
    }

    /// Whether nobody is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.turn.is_none() && self.line.len() == 0
    }

    /// How many tasks do not have the turn.
    pub(crate) fn depth(&self) -> usize {
        self.line.len()
    }

    /// How to reach everybody who waits for something.
    pub(crate) fn wakers(&self) -> impl Iterator<Item = &Waker> {
        let holder = self.turn.iter().filter_map(|holder| holder.waker.as_ref());
        holder.chain(self.line.iter().filter_map(|place| place.waker.as_ref()))
    }

    pub(crate) fn counts(&self) -> Counts {
        let preparing = self.line.iter().filter(|place| place.may_pass_at.is_none()).count();
        let holder = self.turn.as_ref().map(|holder| holder.arrived);
        let first = self.line.iter().next().map(|place| place.arrived);
        Counts {
            waiting: self.line.len() - preparing,
            preparing,
            finishing: usize::from(self.turn.is_some()),
            // Whoever has the turn may have passed somebody older.
            oldest: holder.into_iter().chain(first).min(),
        }
    }

    fn has_turn(&self, id: TaskId) -> bool {
        self.turn.as_ref().is_some_and(|holder| holder.id == id)
    }

    /// Where it is, which task it is, and when it may pass those that still prepare.
    fn first_ready(&self) -> Option<(usize, TaskId, Instant)> {
        self.line.iter().enumerate().find_map(|(index, place)| Some((index, place.id, place.may_pass_at?)))
    }
}

impl Line {
    fn push_back(&mut self, place: Place) {
        self.0.get_or_insert_default().push_back(place);
    }

    fn remove(&mut self, index: usize) -> Option<Place> {
        self.0.as_mut()?.remove(index)
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut Place> {
        self.0.as_mut()?.get_mut(index)
    }

    fn iter(&self) -> impl Iterator<Item = &Place> {
        self.0.iter().flat_map(|line| line.iter())
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |line| line.len())
    }

    fn index_of(&self, id: TaskId) -> Option<usize> {
        self.0.as_ref()?.binary_search_by_key(&id, |place| place.id).ok()
    }
}

impl From<Place> for Holder {
    fn from(Place { id, arrived, waker, .. }: Place) -> Self {
        Self { id, arrived, waker }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn ready(lane: &mut Lane, id: TaskId, now: Instant) -> Turn {
        lane.enter_ready(id, now, now + PATIENCE)
    }

    fn ask(lane: &mut Lane, id: TaskId, now: Instant) -> Turn {
        lane.ask(id, now, Waker::noop())
    }

    #[test]
    fn the_first_task_has_the_turn_at_once_and_the_next_when_it_leaves() {
        let (mut lane, now) = (Lane::default(), Instant::now());

        assert_eq!(ready(&mut lane, 1, now), Turn::Yours);
        assert_eq!(ready(&mut lane, 2, now), Turn::Later);
        assert_eq!(ready(&mut lane, 3, now), Turn::Later);
        assert_eq!(ask(&mut lane, 2, now), Turn::Later);
        assert!(lane.leave(1).is_some(), "2 has asked and has to be woken");
        assert_eq!(ask(&mut lane, 3, now), Turn::Later, "3 must not go before 2");
        assert_eq!(ask(&mut lane, 2, now), Turn::Yours);
    }

    #[test]
    fn a_ready_task_passes_one_that_prepares_when_its_patience_is_over() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        lane.enter_preparing(1, now);

        assert_eq!(ready(&mut lane, 2, now), Turn::Later);
        assert_eq!(ask(&mut lane, 2, now), Turn::Patience { until: now + PATIENCE });
        assert_eq!(ask(&mut lane, 2, now + PATIENCE), Turn::Yours);

        lane.become_ready(1, now + PATIENCE);
        assert_eq!(ask(&mut lane, 1, now + PATIENCE), Turn::Later, "2 has the turn");
        assert!(lane.leave(2).is_some());
        assert_eq!(ask(&mut lane, 1, now + PATIENCE), Turn::Yours);
    }

    #[test]
    fn a_ready_task_never_passes_one_that_is_ready_but_that_one_takes_over_its_patience() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        let later = now + PATIENCE / 2;
        lane.enter_preparing(1, now);
        lane.enter_preparing(2, now);
        let _ = ready(&mut lane, 3, now);

        lane.become_ready(2, later + PATIENCE);

        assert_eq!(ask(&mut lane, 3, now + PATIENCE), Turn::Later, "2 is ready and came first");
        assert_eq!(ask(&mut lane, 2, later), Turn::Patience { until: now + PATIENCE });
        assert_eq!(ask(&mut lane, 2, now + PATIENCE), Turn::Yours);
    }

    #[test]
    fn whoever_gives_up_while_it_prepares_lets_the_next_one_go() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        lane.enter_preparing(1, now);
        let _ = ready(&mut lane, 2, now);
        let _ = ask(&mut lane, 2, now);

        assert!(lane.leave(1).is_some(), "2 waits for exactly this");
        assert_eq!(ask(&mut lane, 2, now), Turn::Yours);
    }

    #[test]
    fn counts_say_who_is_where_and_how_old_the_oldest_is() {
        let (mut lane, now) = (Lane::default(), Instant::now());
        let later = now + PATIENCE;
        lane.enter_preparing(1, now);
        let _ = ready(&mut lane, 2, now);
        let _ = ready(&mut lane, 3, now);

        let _ = ask(&mut lane, 2, later);

        assert_eq!(lane.counts(), Counts { waiting: 1, preparing: 1, finishing: 1, oldest: Some(now) });
        assert_eq!(lane.depth(), 2);
        let _ = (lane.leave(1), lane.leave(2), lane.leave(3));
        assert!(lane.is_idle());
        assert_eq!(lane.counts().oldest, None);
    }
}
