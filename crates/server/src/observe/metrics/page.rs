//! The reference of all figures, made of what is declared.

use std::fmt::Write;

use super::Metrics;

/// What stands above the list.
const HEAD: &str = "\
# Metrics

`GET /metrics` answers the server's figures in the text format of Prometheus (0.0.4). It needs an
admin's key, for they are of all tenants together, and none where the server asks for none; the
setting `observe.metrics` lets everybody read them (`open`) or nobody (`off`). What they
show is counts: no label holds an id, the name of an image, a pool or a volume, a path, or any other
word of a caller, so the number of series never grows with use.

```yaml
scrape_configs:
  - job_name: barchan
    static_configs: [{ targets: [\"127.0.0.1:8080\"] }]
    http_headers: { OPEN-SANDBOX-API-KEY: { files: [/var/lib/barchan/server/api_key] } }
```

The same figures are sent to a collector by OTLP when `observe.otlp_endpoint` is set; see
[observability](observability.md). Counters begin at 0 with each start of the server, and so do the
histograms; all times are in seconds. Histograms have the usual series `_bucket`, `_sum` and
`_count`.

This page is made from the program: `barchan config metrics` prints it.

| name | kind | labels | what |
| --- | --- | --- | --- |
";

/// What stands below it.
const FOOT: &str = "
## Labels

- `operation` of requests: what a route of the API is, such as `create`, `list` or `delete`;
  `daemon` for requests to a sandbox's daemon, `port` for those to another port of a sandbox, and
  `other` for what is no route.
- `status`: `1xx` to `5xx`, or `aborted`.
- `result` of creates: `ok`; `full` (as many sandboxes as there may be); `stopping`; `refused`
  (nothing was tried); `runtime` (it could not be made); `late` (it took too long); `store` (its
  record could not be kept).
- `cause` of ends: `exit`, `oom`, `ttl`, `idle`, `killed` and so on, as in
  [lifecycle](lifecycle.md).
- `state` of sandboxes: as `status.state` has it.
- `signal` and `reason` of OTLP: `spans` or `metrics`, and `queue` or `collector`.
";

/// The page `docs/reference/metrics.md`; nothing if figures are declared wrongly.
#[must_use]
pub fn reference() -> String {
    let Ok(metrics) = Metrics::new(&[]) else {
        return String::new();
    };
    let mut page = HEAD.to_owned();
    for figure in &metrics.described {
        let labels: Vec<String> = figure.labels.iter().map(|it| format!("`{it}`")).collect();
        let (name, kind, help) = (figure.name, figure.kind, figure.help);
        // Writing to a text never fails.
        let _ = writeln!(
            page,
            "| `{name}` | {kind} | {} | {help} |",
            labels.join(" ")
        );
    }
    page + FOOT
}
