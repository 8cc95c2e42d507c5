//! A small real disk that fills up: people are told, uploads are refused, then saves; nothing is lost, and it recovers.

use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::{Method, StatusCode};
use understudy::Settings;

use crate::support::Stage;

const MIB: usize = 1024 * 1024;

/// A file system of 64 MiB of its own.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` where mounting is not allowed.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(folder.path());
        mount.output().is_ok_and(|output| output.status.success()).then_some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).output();
    }
}

/// Leaves about so many MiB.
fn leave(disk: &SmallDisk, mib: usize) -> PathBuf {
    let ballast = disk.path().join("ballast");
    let _ = std::fs::remove_file(&ballast);
    let used: usize = String::from_utf8_lossy(
        &Command::new("df").args(["--output=avail", "-B", "1"]).arg(disk.path()).output().unwrap().stdout,
    )
    .split_whitespace()
    .last()
    .and_then(|free| free.parse().ok())
    .unwrap();
    std::fs::write(&ballast, vec![0_u8; used - mib * MIB]).unwrap();
    ballast
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_is_announced_then_refuses_and_recovers_by_itself() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("mounting needs root: the rule and the flows are tested with an invented disk");
        return;
    };
    let data = disk.path().join("data").display().to_string();
    let marks = [
        ("SERVER_DATA", data.as_str()),
        ("DISK_WARN_FREE_MIB", "40"),
        ("DISK_UPLOADS_FREE_MIB", "24"),
        ("DISK_SAVES_FREE_MIB", "12"),
    ];
    let stage = Stage::start_with(&marks, Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    let bytes = understudy::office::sample_docx("Other", &["Another."]);
    let ready = async || {
        let response = stage.http.get(format!("{}/readyz", stage.base)).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };
    assert_eq!(ready().await, (StatusCode::OK, "ready\n".to_owned()));

    leave(&disk, 32);
    assert_eq!(ready().await, (StatusCode::OK, "ready, but room on the disk is low\n".to_owned()));
    assert_eq!(stage.get("/api/v1/operations/status").await["disk"], "low");
    assert_eq!(stage.upload("1", "other.docx", &bytes).await.status(), StatusCode::CREATED);

    leave(&disk, 18);
    let refused = stage.upload("2", "other.docx", &bytes).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let problem: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "DOC_003");
    assert!(problem["detail"].as_str().unwrap().contains("room"), "{problem}");
    let ann = stage.edit("12345", "ann").await;
    ann.write("Saves are still taken.").await.unwrap();
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    leave(&disk, 6);
    assert_eq!(ready().await.0, StatusCode::SERVICE_UNAVAILABLE);
    let metrics = stage.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("saveguard_disk_level 3"), "{metrics}");
    let ann = stage.edit("12345", "ann").await;
    ann.write("This one has to wait.").await.unwrap();
    ann.close().await.unwrap();
    stage
        .wait_until("the save was put off", async || {
            stage.get("/api/v1/operations/status").await["open_saves"] == 1
        })
        .await;
    assert_eq!(stage.document("12345").await["head"], "2", "the head is untouched");

    std::fs::remove_file(disk.path().join("ballast")).unwrap();
    stage.wait_for_head("12345", "3").await;
    assert!(stage.text("12345").await.contains("This one has to wait."));
    assert_eq!(ready().await, (StatusCode::OK, "ready\n".to_owned()));
    stage.stop().await;
}
