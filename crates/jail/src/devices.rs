//! Pure. Which device nodes a sandbox gets that asks for graphics processors.

use serde::{Deserialize, Serialize};

/// How many graphics processors a sandbox sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gpus {
    /// All of the host's.
    All,
    /// So many, from the first on; they are not kept from other sandboxes.
    Count(u32),
}

/// Nodes by which programs reach NVIDIA's driver whichever the processor is.
const SHARED: [&str; 4] = [
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-modeset",
];

/// How many graphics processors there are, by the names of the devices in /dev: one is seen as a
/// card of NVIDIA's driver, as a render node, or as both.
#[must_use]
pub fn count(names: &[String]) -> u32 {
    let most = cards(names).len().max(render_nodes(names).len());
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// The devices, by their names in /dev, of those that are asked for; `None` when the host has not
/// as many.
#[must_use]
pub fn choose(names: &[String], gpus: Gpus) -> Option<Vec<String>> {
    let present = count(names);
    let wanted = match gpus {
        Gpus::All => present,
        Gpus::Count(wanted) => wanted,
    };
    if wanted == 0 || wanted > present {
        return None;
    }
    let wanted = wanted as usize;
    let cards = cards(names).into_iter().take(wanted);
    let mut chosen: Vec<String> = cards.map(str::to_owned).collect();
    if !chosen.is_empty() {
        let shared = SHARED
            .iter()
            .filter(|it| names.iter().any(|name| name == *it));
        chosen.extend(shared.map(|it| (*it).to_owned()));
    }
    let nodes = render_nodes(names).into_iter().take(wanted);
    chosen.extend(nodes.map(str::to_owned));
    Some(chosen)
}

fn cards(names: &[String]) -> Vec<&str> {
    numbered(names, "nvidia")
}

fn render_nodes(names: &[String]) -> Vec<&str> {
    numbered(names, "dri/renderD")
}

/// The names that are this word and a number, by the number.
fn numbered<'a>(names: &'a [String], word: &str) -> Vec<&'a str> {
    let number = |name: &str| {
        let digits = name.strip_prefix(word)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| plain)
    };
    let found = names
        .iter()
        .filter_map(|name| Some((number(name)?, name.as_str())));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_chosen_by_their_names() {
        let host = "null nvidia10 nvidia0 nvidia2 nvidiactl nvidia-uvm nvidia-caps nvidiaX \
                    dri/card0 dri/renderD129 dri/renderD128 nvidia+1";
        let other = "null dri/card0 dri/renderD128";
        for (names, gpus, expected) in [
            (
                host,
                Gpus::Count(1),
                Some("nvidia0 nvidiactl nvidia-uvm dri/renderD128"),
            ),
            (
                host,
                Gpus::Count(2),
                Some("nvidia0 nvidia2 nvidiactl nvidia-uvm dri/renderD128 dri/renderD129"),
            ),
            (
                host,
                Gpus::All,
                Some("nvidia0 nvidia2 nvidia10 nvidiactl nvidia-uvm dri/renderD128 dri/renderD129"),
            ),
            (host, Gpus::Count(4), None),
            (host, Gpus::Count(0), None),
            (other, Gpus::Count(1), Some("dri/renderD128")),
            (other, Gpus::All, Some("dri/renderD128")),
            (other, Gpus::Count(2), None),
            ("null nvidiactl dri/card0", Gpus::All, None),
            ("", Gpus::All, None),
        ] {
            let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
            let chosen = choose(&names, gpus).map(|names| names.join(" "));
            assert_eq!(chosen.as_deref(), expected, "{gpus:?} of {names:?}");
        }
    }
}
