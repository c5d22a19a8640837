//! Pauses to disk in between.

use barchan_runtime::{Pause, Runtime};

use super::{Done, HOLD, Life, assert_same, begun_with};

impl Life<'_> {
    /// Is paused to disk, while the agent may have a file open, and goes on with the same files.
    pub(in super::super) async fn park(&mut self, is_held: bool) -> Done {
        if is_held {
            self.told(HOLD).await;
        }
        let (native, id) = (&self.world.native, &self.now.id);
        let note = String::new();
        native.pause(id, Pause::ToDisk { note }).await?;
        let layer = native.layers(id).await?.pop().unwrap();
        let (number, now) = (layer.number, &mut self.now);
        self.taken.0.push(format!("park {number}"));
        let told = (number, layer.parent, layer.is_copied);
        assert_eq!(told, (now.last + 1, now.at, false));
        now.parents.insert(number, now.at);
        (now.last, now.at) = (number, number);
        now.tree.seal();
        now.layers.insert(number, begun_with(now.tree.clone()));
        self.world.native.resume(&self.now.id).await?;
        let (agent, seen) = self.desk.called(&self.now.name).await;
        self.agent = agent;
        assert_same("after a pause to disk", &seen, &self.now.tree.view());
        self.counts.parked += 1;
        Ok(())
    }
}
