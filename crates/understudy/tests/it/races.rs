//! What the real server's late reading leads to: PROTOCOL 1.4 (13), 2.6, and the clean-up after a 4.

use serde_json::json;
use understudy::server::Opening;

use crate::host::Reply;
use crate::stage::Stage;

#[tokio::test]
async fn joining_and_leaving_faster_than_the_request_gives_a_4_with_a_joiner() {
    let stage = Stage::set("fast").await;
    let session = stage.opens_with(&stage.config("u1")).await.unwrap();
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    let told: Vec<_> = stage.callbacks().into_iter().map(|callback| callback.body).collect();
    assert_eq!(stage.statuses(), [4, 4]);
    assert_eq!(told[0]["actions"], json!([{"type": 1, "userid": "u1"}]));
    assert_eq!(told[1]["actions"], json!([{"type": 0, "userid": "u1"}]));
    assert!(told[0].get("users").is_none());
}

#[tokio::test]
async fn a_slow_answer_to_a_4_forgets_the_force_save_state_of_whoever_came_meanwhile() {
    let stage = Stage::set("slow-four").await;
    stage.answers(4, [Reply::Held]);
    let first = stage.opens("u1").await;
    first.hang_up().await.unwrap();
    stage.pass(1_000).await;
    assert_eq!(stage.host.held(), 1);
    let second = stage.opens("u2").await;
    second.write("in between").await.unwrap();

    stage.host.release(Reply::Ok);
    stage.pass(1_000).await;

    assert_eq!(stage.ask("forcesave").await["error"], 4, "the server no longer knows of the change");
    second.hang_up().await.unwrap();
    stage.pass_long().await;
    let last = stage.last();
    assert_eq!((last.status(), &last.body["notmodified"]), (2, &json!(null)));
    assert_eq!(understudy::office::changes_in(&stage.file_of(&last).await).len(), 1);
}

#[tokio::test]
async fn a_return_while_the_result_is_built_cancels_it() {
    let stage = Stage::set("built").await;
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    session.close().await.unwrap();
    stage.pass(100).await;
    let back = stage.opens("u2").await;

    assert_eq!(back.opened().await, Opening::Ready);
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1, 1]);
}

#[tokio::test]
async fn a_spent_key_opened_again_stays_without_a_word_and_leaves_without_one() {
    let stage = Stage::set("trailing").await;
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;
    let stale = stage.opens("u2").await;
    assert_eq!(stale.opened().await, Opening::Refresh);
    stale.write("never taken").await.unwrap();
    stage.pass_long().await;

    assert!(stale.is_disconnected());
    assert_eq!(stage.statuses(), [1, 2]);
}

#[tokio::test]
async fn a_shutdown_that_is_called_off_lets_people_in_again() {
    let stage = Stage::set("called-off").await;
    let wait = |on: bool| {
        let stage = &stage;
        async move {
            while stage.server().is_shutting_down().await != on {
                tokio::task::yield_now().await;
            }
            stage.pass(40_000).await;
        }
    };
    let (begun, ()) = tokio::join!(stage.server().shut_down(), wait(true));
    let refused = stage.opens("u1").await;
    let (ended, ()) = tokio::join!(stage.server().call_shutdown_off(), wait(false));
    let welcome = stage.opens("u1").await;

    assert_eq!((begun, ended), (Ok(true), Ok(true)));
    assert_eq!(refused.opened().await, Opening::Disconnected(Some(4001)));
    assert_eq!(welcome.opened().await, Opening::Ready);
}
