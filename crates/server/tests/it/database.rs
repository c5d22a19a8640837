//! What tests read in the database, and do to it behind the server's back.

use crate::world::World;

/// How many lines a table has.
pub(crate) fn count(world: &World, table: &str) -> i64 {
    let statement = format!("SELECT count(*) FROM {table}");
    let counted = open(world).query_row(&statement, [], |line| line.get(0));
    counted.unwrap()
}

/// Has changes of vaults fail, as on a full disk.
pub(crate) fn fill_vaults(world: &World) {
    run(
        world,
        "CREATE TRIGGER full BEFORE UPDATE ON vaults BEGIN SELECT RAISE(ABORT, 'full'); END",
    );
}

/// Ends that.
pub(crate) fn empty_vaults(world: &World) {
    run(world, "DROP TRIGGER full");
}

/// A vault whose sandbox is not there.
pub(crate) fn add_vault_of_nobody(world: &World) {
    run(world, "INSERT INTO vaults VALUES ('gone', x'00')");
}

fn run(world: &World, statement: &str) {
    open(world).execute_batch(statement).unwrap();
}

fn open(world: &World) -> rusqlite::Connection {
    let path = world.state_dir().join("server/barchan.db");
    rusqlite::Connection::open(path).unwrap()
}
