//! Force saves and forms: PROTOCOL 2.3, 2.6 and 14.8.

use std::collections::BTreeSet;

use serde_json::json;

use crate::host::{Callback, Reply};
use crate::stage::Stage;

#[tokio::test]
async fn paths_never_repeat_and_second_resolution_times_do() {
    let stage = Stage::set("pairs").await;
    let session = stage.opens("u1").await;
    for _ in 0..130 {
        for pause_ms in [450, 550] {
            session.write("words").await.unwrap();
            assert_eq!(session.press_save().await.unwrap().code, 0);
            stage.pass(pause_ms).await;
        }
    }

    let saves: Vec<Callback> =
        stage.callbacks().into_iter().filter(|callback| callback.status() == 6).collect();
    let paths: BTreeSet<_> = saves.iter().map(Callback::save_path).collect();
    let times: BTreeSet<_> = saves.iter().map(|save| save.body["lastsave"].to_string()).collect();
    assert_eq!((saves.len(), paths.len()), (260, 260));
    assert!(times.len() < 140, "{}", times.len());
}

#[tokio::test]
async fn the_same_seed_draws_the_same_paths() {
    let run = || async {
        let stage = Stage::set("seeded").await;
        stage.edits_and_closes("u1").await;
        stage.pass_long().await;
        stage.last().save_path()
    };

    assert_eq!(run().await, run().await);
}

#[tokio::test]
async fn a_final_save_with_nothing_new_has_the_same_bytes_on_another_path() {
    let stage = Stage::set("nothing-new").await;
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    session.press_save().await.unwrap();
    stage.pass(1_000).await;
    let forced = stage.last();
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    let last = stage.last();

    assert_eq!((forced.status(), last.status(), &last.body["notmodified"]), (6, 2, &json!(true)));
    assert_eq!(stage.file_of(&forced).await, stage.file_of(&last).await);
    assert_ne!(forced.save_path(), last.save_path());
}

#[tokio::test]
async fn an_accepted_force_save_is_dropped_if_the_last_user_leaves_first() {
    let stage = Stage::set("dropped").await;
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    let accepted = stage.command(&json!({"c": "forcesave", "key": stage.key, "userdata": "nonce"})).await;
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    assert_eq!(accepted["error"], 0);
    assert_eq!(stage.statuses(), [1, 2]);
    assert!(stage.last().body.get("userdata").is_none());
}

#[tokio::test]
async fn one_that_runs_or_was_taken_is_not_modified() {
    let stage = Stage::set("running").await;
    stage.answers(6, [Reply::Held]);
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    assert_eq!(stage.ask("forcesave").await["error"], 0);
    assert_eq!(stage.ask("forcesave").await["error"], 4, "already running");
    stage.pass(1_000).await;
    assert_eq!(stage.ask("forcesave").await["error"], 4, "still waiting for the host");
    stage.host.release(Reply::Ok);
    stage.pass(1_000).await;

    assert_eq!(stage.ask("forcesave").await["error"], 4, "taken");
}

#[tokio::test]
async fn a_refused_one_is_sent_again_inside_the_next_question_with_its_old_userdata() {
    let stage = Stage::set("again").await;
    stage.answers(6, [Reply::Error1, Reply::Held]);
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    stage.command(&json!({"c": "forcesave", "key": stage.key, "userdata": "first"})).await;
    stage.pass(1_000).await;

    let second = json!({"c": "forcesave", "key": stage.key, "userdata": "second"});
    let (reply, ()) = tokio::join!(stage.command(&second), async {
        stage.host.wait_for(3).await;
        stage.pass(3_000).await;
        stage.host.release(Reply::Ok);
    });

    let saves = stage.callbacks().split_off(1);
    assert_eq!(reply["error"], 0);
    assert_eq!(saves[0].save_path(), saves[1].save_path());
    assert_eq!((&saves[1].body["userdata"], &saves[1].body["encrypted"]), (&json!("first"), &json!(false)));
    assert_eq!(stage.ask("forcesave").await["error"], 4, "now it was taken");
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.last().body["notmodified"], true);
}

#[tokio::test]
async fn a_button_press_after_a_refusal_names_its_presser() {
    let stage = Stage::set("presser").await;
    stage.answers(6, [Reply::Error1]);
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u1.write("one").await.unwrap();
    stage.ask("forcesave").await;
    stage.pass(1_000).await;

    u2.press_save().await.unwrap();
    stage.pass(1_000).await;

    let save = stage.last();
    assert_eq!(save.body["actions"], json!([{"type": 2, "userid": "u2"}]));
    assert_eq!((&save.body["users"], &save.body["forcesavetype"]), (&json!(["u1"]), &json!(1)));
    assert!(save.path.ends_with("u=u2"), "the clicker's address");
}

#[tokio::test]
async fn a_change_makes_a_new_one_possible_while_the_old_one_waits() {
    let stage = Stage::set("overlap").await;
    stage.host.always(6, Reply::Held);
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    assert_eq!(session.press_save().await.unwrap().code, 0);
    stage.pass(1_000).await;
    session.write("two").await.unwrap();
    assert_eq!(session.press_save().await.unwrap().code, 0);
    stage.pass(1_000).await;

    assert_eq!(stage.host.held(), 2);
    let held: Vec<usize> = {
        let saves = stage.callbacks().split_off(1);
        let mut sizes = Vec::new();
        for save in &saves {
            sizes.push(understudy::office::changes_in(&stage.file_of(save).await).len());
        }
        sizes
    };
    assert_eq!(held, [1, 2]);
}

#[tokio::test]
async fn a_form_is_submitted_even_without_changes() {
    let stage = Stage::set("form").await;
    let session = stage.opens("u1").await;
    session.submit_form(json!([{"key": "name", "value": "Uma"}])).await.unwrap();
    stage.pass(1_000).await;

    let save = stage.last();
    assert_eq!((save.status(), &save.body["forcesavetype"]), (6, &json!(3)));
    assert_eq!(save.body["actions"], json!([{"type": 2, "userid": "u1"}]));
    assert_eq!(save.body["users"], json!(["u1"]));
    let (status, form) = stage.get(save.body["formsdataurl"].as_str().unwrap()).await;
    assert_eq!(status, 200);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&form).unwrap()[0]["value"], "Uma");
    let fields: Vec<&str> = save.fields.iter().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "key",
            "status",
            "url",
            "changesurl",
            "history",
            "users",
            "actions",
            "lastsave",
            "forcesavetype",
            "token",
            "formsdataurl",
            "filetype"
        ]
    );
    let answered = session.messages().into_iter().find(|message| message["type"] == "rpc").unwrap();
    assert_eq!(answered["data"]["code"], 0);
}

#[tokio::test]
async fn a_copy_for_the_editor_never_reaches_the_host() {
    let stage = Stage::set("copy").await;
    let session = stage.opens("u1").await;
    assert_eq!(session.copy_link().await, Ok(None), "nothing changed yet");
    let id = session.write("one").await.unwrap();
    let (link, ()) = tokio::join!(session.copy_link(), stage.pass(1_000));

    let (status, bytes) = stage.get(&link.unwrap().unwrap()).await;

    assert_eq!(status, 200);
    assert!(understudy::office::changes_in(&bytes).contains(&id));
    session.hang_up().await.unwrap();
    stage.pass_long().await;
    assert_eq!(stage.statuses(), [1, 2]);
    assert_eq!(stage.last().body["notmodified"], false, "the host has seen nothing of it");
}

#[tokio::test]
async fn a_timer_save_comes_once_per_first_change() {
    let stage = Stage::set_with("timer", |settings| settings.autosave = true).await;
    let session = stage.opens("u1").await;
    session.write("one").await.unwrap();
    stage.pass(200_000).await;
    session.write("two").await.unwrap();
    stage.pass(200_000).await;

    assert_eq!(stage.statuses(), [1, 6], "five minutes after the first change, seen at the next whole step");
    assert_eq!(stage.last().body["forcesavetype"], 2);
    assert!(stage.last().body.get("actions").is_none());
}
