#!/usr/bin/env python3
"""Is our English short, and does it refer to what is there? prose.py ROOT

Holds the counts of the front page and of the guide: lines, and the share of sentences of more than 30 words. On the
front page no sentence has more than 25 words, and half of them have at most 14. Code, tables and figures do not count. In every page, a link to a file of this repository names one that is there, and one
to a heading names a heading of that page; and no file cites a document that is not in the repository. In C++ outside
tests, at most OF_COMMENTS lines of comment begin with "Of ".
"""
import pathlib
import re
import statistics
import subprocess
import sys

LONG = 30  # words
# Pages that walk one reader to an answer.
WALKS = ("engineer", "student", "teacher", "profiles")
WALK_LINES, WALK_END = 60, "**Your answer:**"
# Page or folder of pages: (the most lines, the largest share of long sentences).
LIMITS = {"README.md": (180, 0.08), ".github": (80, 0.12), "tools/examples": (80, 0.12), "tools/guide": (200, 0.12),
          "sim/README.md": (200, 0.12)}
FRONT, FRONT_LONG, FRONT_MEDIAN = "README.md", 25, 14  # words of a sentence, the most and in the middle
OF_COMMENTS = 0  # comments that begin with "Of ", where the thing should be named, outside tests


def paragraphs(text):
    """The running text of a page, an item or a paragraph each."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    lines = [line for line in text.split("\n") if not re.match(r"^(    |\||#|!\[)", line)]
    for block in re.split(r"\n\s*\n|\n(?=[*-] |\d+\. )", "\n".join(lines)):
        words = " ".join(block.split())
        if words:
            yield re.sub(r"^[*-] |^\d+\. ", "", words)


def sentences(paragraph):
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    plain = re.sub(r"`[^`]*`", "x", plain)  # what is typed is one word
    return [one for one in re.split(r"(?<=[.!?:;])\s+(?=[A-Z*`x(])", plain) if re.search(r"\w", one)]


def length(sentence):
    return len(re.findall(r"[^\s]*\w[^\s]*", sentence))


def anchors(text):
    found = set()
    for title in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return found


def faults_of_links(root, page):
    text = (root / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        other = (root / page).parent / name if name else root / page
        if not other.exists():
            yield f"{page}: the link to {target} leads nowhere"
        elif heading and other.suffix == ".md" and heading not in anchors(other.read_text(encoding="utf-8")):
            yield f"{page}: {target}: that page has no such heading"


def faults_of_citations(root):
    """Documents beside the repository, which a reader has not."""
    absent = r"\b(SCHEDULES|DESIGN|HOUSE|TRUTH|TOOLCHAIN) ?(\(|section|\.md)|\b(CLUSTER|FIT|PLAN|FORMATS)\.md\b"
    for suffix in ("*.cpp", "*.hpp", "*.py", "*.md", "*.build", "*.sh"):
        for file in sorted(root.rglob(suffix)):
            if any(part.startswith(("build", ".")) for part in file.relative_to(root).parts[:-1]):
                continue
            for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
                if re.search(absent, line) and file.name != "prose.py":
                    yield f"{file.relative_to(root)}:{number}: cites a document that is not in the repository"


def faults_of_comments(root):
    """Lines of comments outside tests that begin with a phrase instead of the thing that they are about."""
    found = []
    for suffix in ("*.cpp", "*.hpp"):
        for file in sorted(root.rglob(suffix)):
            place = file.relative_to(root)
            if place.parts[0] == "tests" or any(part.startswith(("build", ".")) for part in place.parts[:-1]):
                continue
            for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
                if re.search(r"//+ Of ", line):
                    found.append(f"{place}:{number}: a comment begins with \"Of \": name the thing, say what it does")
    if len(found) > OF_COMMENTS:
        yield from found
        yield f"{len(found)} comments begin with \"Of \", and {OF_COMMENTS} are the most"


def faults_of_walks(root):
    for name in WALKS:
        page = f"tools/guide/{name}.md"
        text = (root / page).read_text(encoding="utf-8")
        if text.count("\n") > WALK_LINES:
            yield f"{page}: {text.count(chr(10))} lines, and {WALK_LINES} are the most"
        if not text.rstrip().split("\n\n")[-1].startswith(WALK_END):
            yield f"{page}: its last paragraph does not begin with \"{WALK_END}\""


def faults_of_front(all_of_it):
    for one in all_of_it:
        if length(one) > FRONT_LONG:
            yield f"{FRONT}: a sentence of {length(one)} words, and {FRONT_LONG} are the most: {one[:90]} …"
    middle = statistics.median(length(one) for one in all_of_it) if all_of_it else 0
    if middle > FRONT_MEDIAN:
        yield f"{FRONT}: half of the sentences have more than {middle:g} words, and {FRONT_MEDIAN} are the most"


def faults_of_length(root, page, most_lines, most_long):
    text = (root / page).read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > most_lines:
        yield f"{page}: {lines} lines, and {most_lines} are the most"
    all_of_it = [one for block in paragraphs(text) for one in sentences(block)]
    if page == FRONT:
        yield from faults_of_front(all_of_it)
    long = [one for one in all_of_it if length(one) > LONG]
    if all_of_it and len(long) > most_long * len(all_of_it):
        yield (f"{page}: {len(long)} of {len(all_of_it)} sentences have more than {LONG} words, and "
               f"{most_long:.0%} may: {long[0][:90]} …")


def main(root):
    root = pathlib.Path(root)
    pages = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"], text=True,
                           stdout=subprocess.PIPE, check=False).stdout.split("\n")
    pages = sorted({page for page in pages if page and (root / page).exists()})
    if not pages:  # no repository: those of the release
        pages = sorted(str(page.relative_to(root)) for page in root.rglob("*.md"))
    faults = [fault for page in pages for fault in faults_of_links(root, page)]
    faults += faults_of_citations(root)
    faults += faults_of_comments(root)
    faults += faults_of_walks(root)
    for place, limits in LIMITS.items():
        held = [page for page in pages if page == place or page.startswith(place + "/")]
        if not held:
            faults.append(f"{place}: there is no such page")
        faults += [fault for page in held for fault in faults_of_length(root, page, *limits)]
    print("\n".join(faults) or f"{len(pages)} pages")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} ROOT")
    sys.exit(main(sys.argv[1]))
