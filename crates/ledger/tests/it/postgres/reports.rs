//! What instances tell each other: heard by the others, replaced by what is told later, gone when it is taken back.

use ledger::Reports as _;
use ledger::postgres::throwaway::Server;

#[tokio::test(flavor = "multi_thread")]
async fn others_hear_what_was_told_last_and_nobody_hears_itself() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let (one, two) = (database.ledger().await.unwrap(), database.ledger().await.unwrap());
    one.tell("a", "instance", "first").await.unwrap();
    one.tell("a", "instance", "second").await.unwrap();
    one.tell("a", "drain", "with a zero\0byte").await.unwrap();
    two.tell("b", "instance", "other").await.unwrap();

    let heard = two.told("b", "instance").await.unwrap();

    let [report] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((report.instance.as_str(), report.body.as_str()), ("a", "second"));
    assert!(report.age.as_secs() < 60, "{report:?}");
    assert_eq!(two.told("b", "drain").await.unwrap()[0].body, "with a zero\u{fffd}byte");
    assert!(two.told("a", "drain").await.unwrap().is_empty());
    let all: Vec<_> = two.told("", "instance").await.unwrap().into_iter().map(|each| each.instance).collect();
    assert_eq!(all, ["b", "a"], "the latest first");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_back_or_too_old_is_gone() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let ledger = database.ledger().await.unwrap();
    ledger.tell("a", "instance", "{}").await.unwrap();
    ledger.tell("a", "pulse", "{}").await.unwrap();
    ledger.tell("old", "instance", "{}").await.unwrap();
    let yesterday = "UPDATE reports SET told_at = told_at - interval '25 hours' WHERE instance = 'old'";
    database.execute(yesterday).await.unwrap();
    assert!(ledger.told("b", "instance").await.unwrap()[1].age.as_secs() >= 25 * 3600);

    ledger.take_back("a", "instance").await.unwrap();
    ledger.tell("b", "instance", "{}").await.unwrap();

    assert!(ledger.told("b", "instance").await.unwrap().is_empty());
    assert_eq!(ledger.told("b", "pulse").await.unwrap().len(), 1);
}
