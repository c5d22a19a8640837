//! Pure. A refusal as a page, for people who follow an address in a browser.

/// What such a page may load: nothing.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                                 frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The page of a refusal.
pub(super) fn page(status: u16, code: &str, message: &str) -> String {
    let (code, message) = (escaped(code), escaped(message));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{status} {code}</title>\n\
         <style>body {{ font: 1rem/1.5 sans-serif; margin: 15vh auto; max-width: 36rem; \
         padding: 0 1rem }}</style>\n\
         <h1>This page cannot be shown</h1>\n<p>{message}</p>\n\
         <p><code>{status} {code}</code></p>\n"
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_why_and_runs_nothing() {
        let page = page(502, "A::B", "no <script>alert('x')</script> & \"more\"");
        assert!(page.contains("502 A::B"), "{page}");
        let shown = "no &lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;";
        assert!(page.contains(shown) && !page.contains("<script"), "{page}");
    }
}
