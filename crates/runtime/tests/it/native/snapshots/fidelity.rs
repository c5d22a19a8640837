//! What a sandbox of a snapshot finds is what was there.

use barchan_runtime::{Limits, Runtime};

use super::{World, is_able};

/// Every kind of thing that a layer can hold, in /data.
pub(super) const MAKE: &str = r#"
mkdir -p /data/deep/er /data/closed /data/empty
cd /data
echo plain >plain
printf 'x%.0s' $(seq 5000) >long
ln -s plain link; ln -s /nowhere dangling; ln -s ../../../../etc/passwd out
ln plain twin; mkdir names; ln plain names/third
mkfifo -m 640 pipe
truncate -s 100M sparse; printf end >>sparse
printf a | dd of=holes bs=1 seek=5000000 conv=notrunc status=none
truncate -s 7M holes
cp /bin/true suid; chmod 4755 suid; cp /bin/true sgid; chmod 2711 sgid
mkdir -m 1777 sticky; mkdir -m 2770 shared
chmod 000 closed
echo theirs >theirs; chown 1000:1001 theirs; chown -h 33:33 link; chown 12:0 sticky
chmod 400 long
touch -d '2001-02-03 04:05:06.789' plain
touch -h -d '2002-01-01' dangling
touch -- "$(printf 'odd \n name')" "$(printf 'bytes\377\200')" ' ' '-rf' "$(printf '%0255d' 0)"
touch -d '1999-09-09' deep/er; touch -d '1999-09-09' deep
"#;

/// Attributes, for which there are no words in every shell.
pub(super) const ATTRIBUTES: &str = r#"
python3 - <<'END'
import os, socket
os.setxattr("/data/plain", "user.note", b"\x00\xff words")
os.setxattr("/data/empty", "user.note", b"on a folder")
s = socket.socket(socket.AF_UNIX); s.bind("/data/empty/socket")
acl = b"\x02\x00\x00\x00" + b"".join(
    t.to_bytes(2, "little") + p.to_bytes(2, "little") + i.to_bytes(4, "little")
    for t, p, i in [(1, 6, 0xffffffff), (2, 4, 1234), (4, 4, 0xffffffff),
                    (16, 6, 0xffffffff), (32, 0, 0xffffffff)])
os.setxattr("/data/theirs", "system.posix_acl_access", acl)
# What is in them already has not got it.
for folder in ["/data/names", "/data/deep"]:
    os.setxattr(folder, "system.posix_acl_default", acl)
END
"#;

/// Keeps complaints to itself.
pub(super) const QUIET: &str = "exec 3>&2 2>/dev/null\n";
pub(super) const LOUD: &str = "exec 2>&3\n";

/// Says what is in /data. Folders' sizes are the file system's own affair.
pub(super) const SHOW: &str = r#"
cd /data
find . -mindepth 1 ! -type s ! -type d -printf '%P|%y|%m|%U|%G|%n|%s|%l|%T@\n' | LC_ALL=C sort
find . -type d -printf '%P|%y|%m|%U|%G|%T@\n' | LC_ALL=C sort
find . -type f ! -name sparse -exec md5sum {} + | LC_ALL=C sort
[ plain -ef twin ] && [ plain -ef names/third ] && echo one file
[ $(stat -c %b sparse) -lt 100 ] && [ $(stat -c %b holes) -lt 100 ] && echo sparse
tail -c 4 sparse | od -c
python3 - <<'END'
import os
for at, folders, files in sorted(os.walk(b"/data")):
    for name in sorted(folders + files):
        path = os.path.join(at, name)
        if not os.path.islink(path):
            for key in sorted(os.listxattr(path)):
                print(path, key, os.getxattr(path, key))
END
"#;

/// Whether a sandbox has users besides root: not below a user without subordinate ids.
pub(super) async fn has_others(world: &World) -> bool {
    let script = "awk '{n += $3} END {print n}' /proc/self/uid_map";
    world.run(script, Limits::default()).await.1.trim() != "1"
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_a_layer_can_hold_comes_back() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    // What cannot be made, such as files of others where there are none, is missed below.
    let make = [QUIET, MAKE, ATTRIBUTES, LOUD, SHOW].concat();
    let (id, before) = world.after(&make, None).await;
    let (snapshot, taken) = world.try_save(&id).await.unwrap();
    let own = ["one file", "sparse", "user.note", "|4755|"];
    let others = ["posix_acl_access", "posix_acl_default", "|1000|1001|"];
    let has_others = has_others(&world).await;
    let expected = own.map(|word| (word, true)).into_iter();
    for (word, is_there) in expected.chain(others.map(|word| (word, has_others))) {
        assert_eq!(before.contains(word), is_there, "{word}: {before}");
    }
    // Nothing of the source is needed any more.
    world.native.delete(&id).await.unwrap();
    assert_eq!(world.restored(&snapshot, SHOW).await, before);
    assert_eq!(
        world.restored(&snapshot, "ls -A /data/empty").await,
        "",
        "no socket"
    );
    assert!(taken.bytes < 10 << 20, "holes take no room: {taken:?}");
    world.native.delete_snapshot(&snapshot).await.unwrap();
    world.until_shelved(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_and_replaced_stays_so_over_a_stack() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let show = "cd /data; find . | LC_ALL=C sort; cat kept/* changed; ls -A /etc/ssl";
    let first = "mkdir -p /data/gone/in /data/redone/old /data/kept; cd /data; touch gone/in/f \
                 redone/old/f redone/f; echo one >kept/f; echo one >changed; echo x >file";
    let (id, _) = world.after(first, None).await;
    let below = world.save(&id).await;
    let second = "cd /data; rm -r gone redone; mkdir redone; echo new >redone/new; rm file; mkdir \
                  file; rm -r /etc/ssl; mkdir /etc/ssl; echo two >changed; ";
    let (id, told) = world.after(&format!("{second}{show}"), Some(&below)).await;
    let above = world.save(&id).await;
    assert!(
        told.contains("./redone/new") && !told.contains("old"),
        "{told}"
    );
    assert_eq!(world.restored(&above, show).await, told);
    let third = "rmdir /data/file; rm /data/redone/new; ";
    let (id, told) = world.after(&format!("{third}{show}"), Some(&above)).await;
    let top = world.save(&id).await;
    assert_eq!(world.restored(&top, show).await, told);
    // What lies beneath is as it was.
    assert_eq!(
        world.restored(&below, "cat /data/file /data/changed").await,
        "x\none"
    );
    world.until_shelved(&[&below, &above, &top]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_and_image_come_from_the_snapshot() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let mut plan = super::plan("host", &["sleep", "100000"], Default::default());
    plan.env = [
        ("A", "source"),
        ("B", "source"),
        ("OPENSANDBOX_ID", "source"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let made = world.native.create(plan).await.unwrap();
    let snapshot = world.save(&made.id).await;
    let script = "echo $A $B $OPENSANDBOX_ID; pwd; exec sleep 100000";
    let mut plan = super::plan("", &["sh", "-c", script], Default::default());
    let id = plan.id.clone();
    plan.snapshot = Some(snapshot.clone());
    plan.env = [("B".to_owned(), "own".to_owned())].into();
    let again = world.native.create(plan).await.unwrap();
    assert_eq!(again.image_digest, made.image_digest);
    let told = world.told(&id, "/workspace").await;
    assert_eq!(told.trim_end(), format!("source own {id}\n/workspace"));
    // A snapshot of that knows both.
    let second = world.save(&id).await;
    assert_eq!(world.restored(&second, "echo $A $B").await, "source own");
}
