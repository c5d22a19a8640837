//! Sandboxes with their layers, beside what the model knows of them.

mod parking;

use std::collections::BTreeMap;

use barchan_runtime::{
    ErrorKind, Layer, Origin, Plan, Runtime, RuntimeError, SealOrder, Sealed, SnapshotOrder,
    WhenHeld,
};
use barchan_testkit::seed::Seed;
use barchan_wire::id::{SandboxId, SnapshotId};

use super::super::PATIENCE;
use super::agent::{Agent, Desk};
use super::chance;
use super::compare::{self, assert_same};
use super::tree::Tree;
use crate::native::world::World;

/// Where nothing is at first.
const OWN: &[u8] = b"/model";
/// Folders of the image, of which each life has one.
const IMAGES: [&[u8]; 3] = [b"/etc/fonts", b"/etc/ld.so.conf.d", b"/etc/terminfo"];

/// Orders to the agent, to have a file open and no more.
const HOLD: &str = "hold 2f68656c64";
const RELEASE: &str = "release -";

/// How a step went that others may break off.
pub(super) type Done = Result<(), RuntimeError>;

/// What was counted.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) changes: u32,
    pub(super) exchanged: u32,
    /// Copied though the agent held nothing.
    pub(super) copied: u32,
    pub(super) held: u32,
    pub(super) undone: u32,
    pub(super) parked: u32,
    pub(super) forked: u32,
    pub(super) committed: u32,
    pub(super) compared: u32,
    /// Folders that could not just be renamed.
    pub(super) crossed: u32,
}

/// A sandbox, and what is known of it.
struct Sandbox {
    id: SandboxId,
    /// What the agent calls itself, also after an undo.
    name: String,
    tree: Tree,
    /// Its layers, 0 among them.
    layers: BTreeMap<u32, Tree>,
    /// What each of its layers but 0 stands on.
    parents: BTreeMap<u32, u32>,
    at: u32,
    last: u32,
}

/// Some sandboxes, of which one is at work.
pub(super) struct Life<'a> {
    world: &'a World,
    desk: &'a mut Desk,
    seed: Seed,
    counts: &'a mut Counts,
    tops: [&'static [u8]; 2],
    agent: Agent,
    now: Sandbox,
    before: Vec<Sandbox>,
    snapshots: Vec<SnapshotId>,
    taken: Taken,
}

/// The steps that were taken, told when one fails.
#[derive(Default)]
struct Taken(Vec<String>);

impl Drop for Taken {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("it took these steps:\n{}", self.0.join("\n"));
        }
    }
}

impl<'a> Life<'a> {
    pub(super) async fn begin(
        (desk, world): (&'a mut Desk, &'a World),
        mut seed: Seed,
        counts: &'a mut Counts,
    ) -> Self {
        let tops = [OWN, IMAGES[seed.number() as usize % IMAGES.len()]];
        let (plan, name) = desk.plan("host", &tops);
        let id = plan.id.clone();
        world.native.create(plan).await.unwrap();
        let (agent, seen) = desk.called(&name).await;
        let tree = Tree::of(&seen);
        assert_same("what the model makes of it", &tree.view(), &seen);
        Self {
            now: Sandbox::new(id, name, tree),
            world,
            desk,
            seed,
            counts,
            tops,
            agent,
            before: Vec::new(),
            snapshots: Vec::new(),
            taken: Taken::default(),
        }
    }

    pub(super) fn chance(&mut self, below: u64) -> u64 {
        self.seed.number() % below
    }

    /// Changes files, and sees that they are what the model says.
    pub(super) async fn change(&mut self, most: u64) {
        let count = self.chance(most) + 1;
        let (mut tried, mut made) = (0, 0);
        // What is asked at once must be known at once: the answer to a move is waited for.
        while made < count && tried < count * 4 {
            tried += 1;
            let Some(change) = chance::change(&mut self.seed, &self.now.tree) else {
                continue;
            };
            let line = change.line(&self.now.tree);
            self.taken.0.push(change.to_string());
            let answer = self.agent.ask(std::slice::from_ref(&line)).await;
            let is_crossed = match &*answer[0] {
                "ok" => false,
                "crossed" => true,
                other => panic!("{other} at {}: {line}", change.path.escape_ascii()),
            };
            change.apply(&mut self.now.tree, is_crossed);
            self.counts.crossed += u32::from(is_crossed);
            made += 1;
        }
        self.counts.changes += u32::try_from(made).unwrap();
    }

    pub(super) async fn look(&mut self, what: &str) {
        let seen = self.agent.look().await;
        assert_same(what, &seen, &self.now.tree.view());
    }

    /// Seals; `is_held`: while the agent has a file open.
    pub(super) async fn seal(&mut self, is_held: bool) -> Done {
        if is_held {
            self.told(HOLD).await;
        }
        let order = SealOrder {
            sandbox: self.now.id.clone(),
            when_held: WhenHeld::Copy,
            note: String::new(),
            wait: PATIENCE,
        };
        let sealed = self.world.native.seal(order).await;
        if is_held && !is_lost(&sealed) {
            self.told(RELEASE).await;
        }
        match sealed? {
            Sealed::Layer(layer) => self.sealed(&layer, is_held),
            Sealed::Held(holders) => panic!("{holders:?}"),
        }
        Ok(())
    }

    fn sealed(&mut self, layer: &Layer, is_held: bool) {
        let (number, now) = (layer.number, &mut self.now);
        let steps = &mut self.taken.0;
        steps.push(format!("seal {number}, copied: {}", layer.is_copied));
        assert_eq!((number, layer.parent), (now.last + 1, now.at));
        now.parents.insert(number, now.at);
        (now.last, now.at) = (number, number);
        now.layers.insert(number, begun_with(now.tree.clone()));
        match (layer.is_copied, is_held) {
            (false, false) => self.counts.exchanged += 1,
            (true, false) => self.counts.copied += 1,
            (true, true) => self.counts.held += 1,
            (false, true) => panic!("sealed while a file was written to"),
        }
        if !layer.is_copied {
            self.now.tree.seal();
        }
    }

    async fn told(&mut self, order: &str) {
        assert_eq!(self.agent.ask(&[order.to_owned()]).await, ["ok"]);
    }

    /// Goes back, or forward, to any layer.
    pub(super) async fn undo(&mut self) -> Done {
        let (layer, tree) = self.any_layer();
        self.taken.0.push(format!("undo {layer}"));
        self.world.native.undo(&self.now.id, layer).await?;
        let (agent, seen) = self.desk.called(&self.now.name).await;
        self.agent = agent;
        (self.now.tree, self.now.at) = (begun_with(tree), layer);
        assert_same(&format!("back at {layer}"), &seen, &self.now.tree.view());
        self.counts.undone += 1;
        Ok(())
    }

    /// Goes on in another sandbox, made of a layer; the one before may end.
    pub(super) async fn fork(&mut self) -> Done {
        let (layer, tree) = self.any_layer();
        let (plan, name) = self.desk.plan("host", &self.tops);
        let from = Some(self.origin(layer));
        self.go_on(
            Plan { from, ..plan },
            name,
            tree,
            &format!("made of {layer}"),
        )
        .await?;
        self.counts.forked += 1;
        Ok(())
    }

    /// Goes on in another sandbox, made of a snapshot of a layer.
    pub(super) async fn commit(&mut self) -> Done {
        let (layer, tree) = self.any_layer();
        let snapshot: SnapshotId = uuid::Uuid::new_v4().to_string().parse().unwrap();
        let order = SnapshotOrder {
            sandbox: self.now.id.clone(),
            layer: Some(layer),
            snapshot: snapshot.clone(),
            bytes_max: 1 << 30,
            wait: PATIENCE,
        };
        self.world.native.snapshot(order).await?;
        self.snapshots.push(snapshot.clone());
        let (plan, name) = self.desk.plan("", &self.tops);
        let snapshot = Some(snapshot);
        let what = format!("restored from a snapshot of {layer}");
        self.go_on(Plan { snapshot, ..plan }, name, tree, &what)
            .await?;
        self.counts.committed += 1;
        Ok(())
    }

    async fn go_on(&mut self, plan: Plan, name: String, tree: Tree, what: &str) -> Done {
        let id = plan.id.clone();
        self.taken.0.push(what.to_owned());
        self.world.native.create(plan).await?;
        let (agent, seen) = self.desk.called(&name).await;
        let tree = begun_with(tree);
        assert_same(what, &seen, &tree.view());
        let new = Sandbox::new(id, name, tree);
        let old = std::mem::replace(&mut self.now, new);
        self.agent = agent;
        match self.chance(3) {
            0 => self.world.native.delete(&old.id).await?,
            // Without its line the agent ends; its layers are there until it is deleted.
            _ => self.before.push(old),
        }
        Ok(())
    }

    /// Forgets some layers, but for 0.
    pub(super) async fn forget(&mut self) {
        let all: Vec<u32> = self.now.layers.keys().copied().skip(1).collect();
        let gone: Vec<_> = all.into_iter().filter(|_| self.chance(2) == 0).collect();
        self.world
            .native
            .forget_layers(&self.now.id, &gone)
            .await
            .unwrap();
        gone.iter().for_each(|number| self.now.forget(*number));
        for layer in gone.into_iter().take(1) {
            let refused = self
                .world
                .native
                .undo(&self.now.id, layer)
                .await
                .unwrap_err();
            assert_eq!(refused.kind, ErrorKind::UnknownLayer, "{refused}");
        }
        self.count().await;
    }

    /// It has the layers that are known, each on the one that is known, and no other.
    pub(super) async fn count(&self) {
        let listed = self.world.native.layers(&self.now.id).await.unwrap();
        let listed = listed.iter().map(|layer| (layer.number, layer.parent));
        assert_eq!(listed.collect::<BTreeMap<_, _>>(), self.now.parents);
    }

    /// Compares any two layers.
    pub(super) async fn compare(&mut self) -> Done {
        let ((from, old), (to, new)) = (self.any_layer(), self.any_layer());
        let told = compare::told(self.world, &self.now.id, (from, to), &self.tops).await?;
        let expected = compare::changes(&old.view(), &new.view(), &self.tops);
        assert_eq!(told, expected, "from {from} to {to}");
        self.counts.compared += 1;
        Ok(())
    }

    /// All layers, or some of many, are what they were when they were sealed.
    pub(super) async fn end(mut self, most: usize) {
        for sandbox in std::iter::once(&self.now).chain(&self.before) {
            let numbers: Vec<u32> = sandbox.layers.keys().copied().collect();
            let step = numbers.len().div_ceil(most);
            for number in numbers.into_iter().step_by(step) {
                let (plan, name) = self.desk.plan("host", &self.tops);
                let (from, id) = (Some(sandbox.origin(number)), plan.id.clone());
                self.world
                    .native
                    .create(Plan { from, ..plan })
                    .await
                    .unwrap();
                let (_, seen) = self.desk.called(&name).await;
                let what = format!("layer {number} at the end");
                assert_same(&what, &seen, &sandbox.layers[&number].view());
                self.world.native.delete(&id).await.unwrap();
            }
        }
        self.before.push(self.now);
        for sandbox in self.before {
            self.world.native.delete(&sandbox.id).await.unwrap();
        }
        for snapshot in &self.snapshots {
            self.world.native.delete_snapshot(snapshot).await.unwrap();
        }
    }

    /// The one that is at work.
    pub(super) fn sandbox(&self) -> SandboxId {
        self.now.id.clone()
    }

    pub(super) fn any_layer(&mut self) -> (u32, Tree) {
        let at = self.chance(self.now.layers.len() as u64) as usize;
        let (number, tree) = self.now.layers.iter().nth(at).unwrap();
        (*number, tree.clone())
    }

    fn origin(&self, layer: u32) -> Origin {
        self.now.origin(layer)
    }
}

impl Sandbox {
    fn new(id: SandboxId, name: String, tree: Tree) -> Self {
        Self {
            id,
            name,
            layers: BTreeMap::from([(0, tree.clone())]),
            tree,
            parents: BTreeMap::new(),
            at: 0,
            last: 0,
        }
    }

    fn origin(&self, layer: u32) -> Origin {
        let sandbox = self.id.clone();
        Origin { sandbox, layer }
    }

    /// What stood on the layer stands on the one before it.
    fn forget(&mut self, layer: u32) {
        self.layers.remove(&layer);
        let before = self.parents.remove(&layer).unwrap();
        for at in self.parents.values_mut().chain([&mut self.at]) {
            if *at == layer {
                *at = before;
            }
        }
    }
}

/// Whether the launcher is gone, and the sandbox with it.
fn is_lost<T>(done: &Result<T, RuntimeError>) -> bool {
    let kind = done.as_ref().err().map(|error| error.kind);
    kind.is_some_and(|kind| kind != ErrorKind::LayerFailed)
}

/// What a sandbox finds that begins with a layer: the same, and all of it below.
fn begun_with(mut tree: Tree) -> Tree {
    tree.seal();
    tree
}
