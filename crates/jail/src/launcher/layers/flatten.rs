//! Many layers become one, beside the sandbox and without a stop, because each costs time whenever
//! a file is looked for. What is mounted stays as it is until the sandbox's next root.

use std::io;
use std::rc::Rc;

use super::Layer;
use crate::capture::{Given, Process, Told, Work};
use crate::launcher::Launcher;
use crate::launcher::snapshots::Task;

/// How many layers of its own a sandbox has before they are merged.
const FLATTEN_AT: usize = 32;

/// Layers that are being merged.
#[derive(Debug)]
pub(in super::super) struct Flattening {
    sandbox: String,
    /// These, top first.
    layers: Vec<Rc<Layer>>,
    /// The number of the result on their disk, and whose it is.
    number: u32,
    base: u32,
}

impl Launcher {
    /// Has the layers of a sandbox merged if there are many, and nobody is at it.
    pub(in super::super) fn flatten(&mut self, sandbox: &str) {
        if let Err(error) = self.begin_flattening(sandbox) {
            self.note_failure(&format!("merge the layers of a sandbox: {error}"));
        }
    }

    fn begin_flattening(&mut self, sandbox: &str) -> io::Result<()> {
        let Some((tenant, _)) = self.tenant_of(sandbox) else {
            return Ok(());
        };
        let Some(upper) = tenant.files.upper.clone() else {
            return Ok(());
        };
        // Those of others are shared, and to merge them would be to copy them.
        let is_own = |layer: &&Rc<Layer>| layer.is_beside(&upper);
        let own = tenant.files.lower.iter().take_while(is_own);
        let layers: Vec<_> = own.cloned().collect();
        // Not each time anew if it cannot be done.
        let is_due = !layers.is_empty() && layers.len().is_multiple_of(FLATTEN_AT);
        if !is_due || tenant.files.is_flattened {
            return Ok(());
        }
        let number = self.disks.reserve(&upper)?;
        let base = upper.base();
        let stack = self.disks.sources(&layers)?;
        let given = Given {
            shelf: self.disks.folder(&upper)?,
            layer: None,
            events: None,
            connection: None,
            stack: &stack,
        };
        let process = Process::start(&Work::Merge(number, base), &given)?;
        if let Some((tenant, _)) = self.tenant_of(sandbox) {
            tenant.files.is_flattened = true;
        }
        let flattening = Flattening {
            sandbox: sandbox.to_owned(),
            layers,
            number,
            base,
        };
        self.employ(process, Task::Flatten(Box::new(flattening)))
    }

    /// The merged layer takes the place of the others, above and below which there may be more by
    /// now; or nothing came of it, and the others stay.
    pub(in super::super) fn flattening_ended(
        &mut self,
        flattening: Flattening,
        last: Option<Told>,
    ) {
        let Flattening {
            sandbox,
            layers,
            number,
            base,
        } = flattening;
        let is_merged = matches!(last, Some(Told::Copied(_)));
        if let Some(Told::Failed(words)) = last {
            self.note_failure(&format!("merge the layers of a sandbox: {words}"));
        }
        let beside = layers.first();
        let merged = beside.map(|beside| self.disks.keep(beside, number, base));
        if let (Some(files), Some(Ok(merged))) = (self.files_of_mut(&sandbox), merged) {
            files.is_flattened = false;
            let place = files
                .lower
                .windows(layers.len())
                .position(|window| window.iter().zip(&layers).all(|(a, b)| Rc::ptr_eq(a, b)));
            if let (true, Some(place)) = (is_merged, place) {
                files.lower.splice(place..place + layers.len(), [merged]);
            }
        }
        drop(layers);
        self.sweep_layers();
    }
}
