#!/usr/bin/env bash
# The pages as a book: mdBook builds them, its tests run the samples in Rust, and every link of the HTML leads to a page,
# a picture or a heading of the book.
#
#   ci/book.sh [DIRECTORY]        the book stays there (default: nowhere)
#
# Exit code: 0 well, 1 something failed, 3 a tool is missing (mdbook, python3).
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in mdbook python3; do
  command -v $tool >/dev/null || { echo "ci/book.sh: there is no $tool (cargo install --locked mdbook)" >&2; exit 3; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
book=$(realpath -m "${1:-$work/book}")

# What mdBook warns of is wrong: a page that is missing, HTML that does not close.
mdbook build docs -d "$book" 2>"$work/log" && ! grep -Ei 'warn|error' "$work/log" || { cat "$work/log" >&2; exit 1; }
python3 - "$book" <<'END'
import html.parser, pathlib, sys, urllib.parse

root = pathlib.Path(sys.argv[1]).resolve()


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and tag != "base":
                self.links.append(value)


# The page for addresses that lead nowhere is served from any of them.
pages = {path: Page(path) for path in root.rglob("*.html") if path.name != "404.html"}
wrong = n_links = 0
for path, page in pages.items():
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        n_links += 1
        target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        is_there = target.exists() and target.is_relative_to(root)
        if not is_there or (parts.fragment and target in pages and parts.fragment not in pages[target].ids):
            print(f"{path.relative_to(root)}: nothing is at {link}")
            wrong += 1
print(f"{len(pages)} pages, {n_links} links, {wrong} wrong")
sys.exit(wrong > 0 or len(pages) < 20)
END

# mdBook has no way to say --extern.
cargo build --quiet -p hopbine
built=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
mkdir "$work/bin"
printf '#!/bin/sh\nexec "%s" "$@" --extern hopbine="%s"\n' "$(command -v rustdoc)" "$built/libhopbine.rlib" >"$work/bin/rustdoc"
chmod +x "$work/bin/rustdoc"
PATH=$work/bin:$PATH mdbook test docs -L "$built/deps" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
echo "samples in Rust: well"
