//! What becomes of snapshots whose records are gone.

use std::path::Path;

use barchan_runtime::Runtime as _;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_lost_database_costs_no_snapshot() {
    let mut world = World::new().await;
    let sandbox = world.sandbox().await;
    let id = world.ready(&sandbox, &json!({})).await;
    world.stop().await;
    let database = world.state_dir().join("server/barchan.db");
    let backup = std::fs::read(&database).unwrap();
    let spoil: [fn(&Path); 2] = [
        |file| std::fs::remove_file(file).unwrap(),
        |file| std::fs::write(file, "").unwrap(),
    ];
    for spoil in spoil {
        spoil(&database);
        for _ in 0..2 {
            let error = world.start().await.unwrap_err().to_string();
            let told = ["barchan.db is new", "1 snapshots", "images/snapshots"];
            assert!(told.iter().all(|told| error.contains(told)), "{error}");
        }
        assert_eq!(world.fake.snapshots().await.unwrap().len(), 1);
    }
    std::fs::write(&database, backup).unwrap();
    world.start().await.unwrap();
    assert_eq!(world.shown(&id).await["status"]["state"], "Ready");
}
