# SPDX-License-Identifier: MIT
"""Conversions to plain text for tools/fetch_texts.py: pages, country profiles, text files."""
import html.parser
import json


class HtmlText(html.parser.HTMLParser):
    """Paragraphs, headings, list items and `pre` blocks of a page, without its markup."""
    VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
    BLOCK = {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd",
             "blockquote", "table", "tr", "pre", "section", "article", "hr", "caption"}
    SKIP = {"head", "script", "style", "nav", "button", "form"}
    # Menus, tables of contents and page links on pages of Sphinx, DocBook, Publican and Drupal
    SKIP_CLASS = {"headerlink", "related", "sphinxsidebar", "footer", "navheader", "navfooter",
                  "toc", "docnav", "book-navigation", "indexterm"}
    SKIP_ID = {"title", "banner"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.blocks, self.line, self.skipped, self.pre, self.items = [], [], 0, 0, 0
        self.bullet = ""

    def flush(self):
        text = "".join(self.line)
        self.line = []
        if self.pre:
            text = "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
        else:
            text = "\n".join(" ".join(part.split()) for part in text.split("\n")).strip()
        if text.strip():
            self.blocks.append((bool(self.bullet), self.bullet + text))
            self.bullet = ""

    def handle_starttag(self, tag, attrs):
        if tag in self.VOID:
            if tag == "br" and not self.skipped:
                self.line.append("\n")
            return
        classes = set((dict(attrs).get("class") or "").split())
        if (self.skipped or tag in self.SKIP or classes & self.SKIP_CLASS
                or dict(attrs).get("id") in self.SKIP_ID):
            self.skipped += 1
            return
        if tag in self.BLOCK:
            self.flush()
        if tag == "li":
            self.bullet = "- "
        elif tag in ("td", "th") and "".join(self.line).strip():
            self.line.append(" | ")
        self.pre += tag == "pre"

    def handle_startendtag(self, tag, attrs):
        if tag in self.VOID:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        if self.skipped:
            self.skipped -= 1
            return
        if tag in self.BLOCK:
            self.flush()
        if tag == "li":
            self.bullet = ""
        self.pre = max(0, self.pre - (tag == "pre"))

    def handle_data(self, data):
        if not self.skipped:
            self.line.append(data if self.pre else data.replace("\n", " "))

    def text(self):
        self.flush()
        out = ""
        for item, block in self.blocks:
            if out:
                out += "\n" if item and last_item else "\n\n"
            out += block
            last_item = item
        return out


def from_html(text):
    parser = HtmlText()
    parser.feed(text)
    parser.close()
    return parser.text()


def from_factbook(text):
    """Turns a country profile's JSON into headings and "Field: value" lines."""
    def clean(value):
        return "; ".join(part.strip() for part in (value or "").split("++") if part.strip())

    def field(name, value):
        lines = []
        own = clean(value.get("text"))
        parts = [(key, clean(part.get("text"))) for key, part in value.items()
                 if isinstance(part, dict)]
        parts = [(key, part) for key, part in parts if part]
        if own:
            lines.append(f"{name}: {own}")
        elif parts:
            lines.append(f"{name}:")
        lines += [f"  {key}: {part}" for key, part in parts]
        return "\n".join(lines)

    profile = json.loads(text)
    names = profile["Government"]["Country name"]
    names = [clean(names.get(f"conventional {form} form", {}).get("text"))
             for form in ("short", "long")]
    sections = [next(name for name in names if name and not name.startswith("none"))]
    for section, fields in profile.items():
        lines = [line for line in (field(name, value) for name, value in fields.items()) if line]
        if lines:
            sections.append(section + "\n\n" + "\n".join(lines))
    return "\n\n".join(sections)


def from_text(text):
    """The text unchanged, except for blanks at line ends and DOS's end-of-file marks."""
    return "\n".join(line.rstrip() for line in text.replace("\x1a", "").split("\n"))


CONVERTERS = {"text": from_text, "html": from_html, "factbook": from_factbook}
