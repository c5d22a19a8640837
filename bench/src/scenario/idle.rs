//! What an idle sandbox costs in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use super::Measured;
use crate::args::Options;
use crate::host::{self, Process};
use crate::http::Connection;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::{api, ticker};

/// How long the machine is left alone before it is looked at.
const REST: Duration = Duration::from_secs(3);
/// Sandboxes of a page, and how many pages are asked for.
const PAGE: usize = 200;
const PAGES: usize = 50;
/// What the kernel holds for processes, as /proc/meminfo calls it.
const KERNEL: [&str; 4] = ["Slab", "KernelStack", "PageTables", "Percpu"];

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let order = api::order(IMAGE);
    // One sandbox before, so that what is made once and for all is there already.
    let first = api::create(&mut connection, &order)?;
    api::command(&mut connection, &first, api::Order::Script)?;
    rest();
    let before = Memory::of(server.pid());
    let mut made = Samples::new("idle_made", "made for this, one after the other", "ms");
    let mut ids = Vec::new();
    for _ in 0..options.idle {
        let start = ticker::now();
        let created = api::create(&mut connection, &order);
        made.add(created.map_err(|error| format!("{error:#}")).map(|id| {
            ids.push(id);
            ticker::ms_since(start)
        }));
    }
    rest();
    let after = Memory::of(server.pid());
    let held = of_the_server(&mut connection, server.pid(), ids.len());
    let mut answering = Samples::new("idle_answering", "each answers afterwards", "ms");
    for id in &ids {
        let start = ticker::now();
        let pinged = api::ping(&mut connection, id).map(|()| ticker::ms_since(start));
        answering.add(pinged.map_err(|error| format!("{error:#}")));
    }
    for id in ids.iter().chain([&first]) {
        api::delete(&mut connection, id)?;
    }
    let count = ids.len().max(1) as f64;
    let each = |name: &str| (after.by(name) - before.by(name)) / count;
    let mut samples = vec![made, answering];
    samples.extend(held);
    for (id, title, name) in [
        ("idle_daemon", "its daemon", "barchan-execd"),
        ("idle_entrypoint", "its entrypoint", "tail"),
        ("idle_server", "server and launcher", "others"),
        ("idle_slab", "kernel: slab", "Slab"),
        ("idle_stacks", "kernel: stacks", "KernelStack"),
        ("idle_tables", "kernel: page tables", "PageTables"),
        ("idle_percpu", "kernel: per processor", "Percpu"),
    ] {
        let mut one = Samples::new(id, title, "KiB");
        one.add(Ok(each(name)));
        samples.push(one);
    }
    let mut all = Samples::new("idle_total", "an idle sandbox, all told", "KiB");
    all = all.goal(Statistic::P50, Bound::AtMost, 1.2e6 / 1024.0);
    all.add(Ok(after.held.keys().map(|name| each(name)).sum()));
    samples.push(all);
    let available = before.available - after.available;
    Ok(Measured {
        title: "Memory of an idle sandbox",
        samples,
        notes: vec![format!(
            "{} at once; memory that the kernel says is available shrank by {:.0} KiB for each",
            ids.len(),
            available / count
        )],
    })
}

/// What the server takes while all of them are up, and how long a page of them takes.
fn of_the_server(connection: &mut Connection, server: u32, count: usize) -> [Samples; 3] {
    let mut memory = Samples::new("idle_server_memory", "memory of the server", "MiB");
    memory = memory.goal(Statistic::P50, Bound::AtMost, 80.0);
    // Root's server is two processes of one name.
    let family = host::descendants(server);
    let own = family.iter().filter(|it| it.name == "barchan");
    let kib: u64 = own.map(|it| host::pss_kib(it.pid)).sum();
    memory.add(Ok(kib as f64 / 1024.0));
    let mut open = Samples::new(
        "idle_descriptors",
        "descriptors of the launcher for each",
        "",
    );
    open = open.goal(Statistic::P50, Bound::AtMost, 8.0);
    let launchers = family.iter().filter(|it| it.name == "barchan-jail");
    let descriptors = launchers.map(|it| host::descriptors(it.pid)).max();
    open.add(Ok(descriptors.unwrap_or(0) as f64 / count.max(1) as f64));
    let mut page = Samples::new("idle_page", "a page of 200 of them", "ms");
    page = page.goal(Statistic::P50, Bound::AtMost, 10.0);
    for _ in 0..PAGES {
        let start = ticker::now();
        let listed = api::list(connection, PAGE).map(|()| ticker::ms_since(start));
        page.add(listed.map_err(|error| format!("{error:#}")));
    }
    [memory, open, page]
}

fn rest() {
    ticker::sleep_until(ticker::now() + REST);
}

/// KiB by what holds them, and what is left.
struct Memory {
    held: BTreeMap<String, f64>,
    available: f64,
}

impl Memory {
    fn of(server: u32) -> Self {
        let meminfo = host::meminfo();
        let from_kernel = |name: &&str| meminfo.get(*name).copied().unwrap_or(0) as f64;
        let mut held: BTreeMap<String, f64> = KERNEL
            .iter()
            .map(|name| ((*name).to_owned(), from_kernel(name)))
            .collect();
        for Process { pid, name, .. } in host::descendants(server) {
            let name = match name.as_str() {
                "barchan-execd" | "tail" => name,
                _ => "others".to_owned(),
            };
            *held.entry(name).or_default() += host::pss_kib(pid) as f64;
        }
        Self {
            available: from_kernel(&"MemAvailable"),
            held,
        }
    }

    fn by(&self, name: &str) -> f64 {
        self.held.get(name).copied().unwrap_or(0.0)
    }
}
