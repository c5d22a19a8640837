//! The file tools of agents, and a search beside ripgrep in the same sandbox, over the same tree.

use anyhow::Result;

use super::Measured;
use crate::api;
use crate::args::Options;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::ticker;

/// Rounds of searches: each takes a large part of a second.
const SEARCHES: usize = 30;
/// Files in the tree, and in how many of them the search finds something.
const TREE: &str = "20,000 files of 3 KB in 200 directories, 200 lines to find";

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let id = api::create(&mut connection, &api::order(IMAGE))?;
    api::make_tree(&mut connection, &id)?;
    let mut read = Samples::new("tool_read", "read a file of 10 KB", "ms");
    read = read.goal(Statistic::P50, Bound::AtMost, 0.4);
    let mut ls = Samples::new("tool_ls", "list 100 files", "ms");
    let mut edit = Samples::new("tool_edit", "edit a file of 10 KB", "ms");
    for round in 0..options.warm_up + options.rounds {
        for (tool, samples) in [("read", &mut read), ("ls", &mut ls), ("edit", &mut edit)] {
            let start = ticker::now();
            let done = api::tool(&mut connection, &id, tool).map(|()| ticker::ms_since(start));
            if round >= options.warm_up {
                samples.add(done.map_err(|error| format!("{error:#}")));
            }
        }
    }
    let mut ours = Samples::new("tool_grep", "search for a text", "ms");
    let mut theirs = Samples::new("ripgrep", "rg -F, run as a command", "ms");
    let mut glob = Samples::new("tool_glob", "find names", "ms");
    for round in 0..=SEARCHES {
        let start = ticker::now();
        let found = api::tool(&mut connection, &id, "grep").map(|()| ticker::ms_since(start));
        let start = ticker::now();
        let beside = api::ripgrep(&mut connection, &id).map(|()| ticker::ms_since(start));
        let start = ticker::now();
        let names = api::tool(&mut connection, &id, "glob").map(|()| ticker::ms_since(start));
        if round > 0 {
            let all = [
                (found, &mut ours),
                (beside, &mut theirs),
                (names, &mut glob),
            ];
            for (done, samples) in all {
                samples.add(done.map_err(|error| format!("{error:#}")));
            }
        }
    }
    api::delete(&mut connection, &id)?;
    let mut ratio = Samples::new("ratio_ripgrep", "Barchan / ripgrep", "ratio");
    ratio = ratio.goal(Statistic::P50, Bound::AtMost, 1.3);
    let both = ours.p50().zip(theirs.p50());
    ratio.add(
        both.map(|(ours, theirs)| ours / theirs)
            .ok_or_else(|| "one of the two never ran".to_owned()),
    );
    Ok(Measured {
        title: "File tools of agents",
        samples: vec![read, ls, edit, ours, theirs, ratio, glob],
        notes: vec![format!("searches: {TREE}")],
    })
}
