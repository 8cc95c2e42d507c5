//! What lanes cost when nothing happens, and what can be seen of them when something does.

use lanes::{Lanes, Settings};

use crate::stage::{lanes, work};

#[tokio::test]
async fn a_million_keys_used_once_each_leave_no_lane_behind() {
    let lanes = Lanes::new(Settings::default()).unwrap();
    let mut most = 0;

    for thousand in 0..1_000u32 {
        let submit = |key| lanes.submit(thousand * 1_000 + key, async {}).unwrap();
        (0..999).map(submit).for_each(drop);
        let mut last = submit(999);
        most = most.max(lanes.count());
        last.wait().await.unwrap();
    }

    assert_eq!(most, 1_000, "they were there");
    assert_eq!(lanes.count(), 0);
    assert!(lanes.is_empty() && lanes.snapshot().is_empty());
}

#[tokio::test]
async fn a_lane_is_gone_when_its_last_ticket_says_done() {
    let lanes = lanes();

    let mut first = lanes.submit("doc", async {}).unwrap();
    let mut last = lanes.submit("doc", async {}).unwrap();
    first.wait().await.unwrap();
    last.wait().await.unwrap();

    assert!(lanes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_shows_every_lane_with_its_tasks_by_part_and_the_oldest_age() {
    let lanes = lanes();
    let _running = lanes.submit("doc1", work(60_000)).unwrap();
    work(1_500).await;
    let _waiting = [lanes.submit("doc1", async {}).unwrap(), lanes.submit("doc1", async {}).unwrap()];
    let _preparing = lanes.submit_pipelined("doc2", work(60_000), |()| async {}).unwrap();
    work(250).await;

    let mut snapshot = lanes.snapshot();
    snapshot.sort_by_key(|lane| lane.key);

    let seen: Vec<_> = snapshot
        .iter()
        .map(|it| (it.key, it.waiting, it.preparing, it.finishing, it.oldest_age_ms))
        .collect();
    assert_eq!(seen, [("doc1", 2, 0, 1, 1_750), ("doc2", 0, 1, 0, 250)]);
    assert_eq!(lanes.count(), 2);
}
