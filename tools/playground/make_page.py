#!/usr/bin/env python3
"""Puts the playground together in one HTML file.

usage: make_page.py OUTPUT ENGINE_JS ENGINE_WASM WORKER_JS --styles CSS... --modules JS...

The modules are joined as those of the report are (tools/scripts/embed_page.py), and the style
sheets are all that stand beside them. The engine and the worker's script are base64 of gzip; the
page starts the worker from a blob, and asks for no file.
"""
import argparse
import base64
import gzip
import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import embed_page  # noqa: E402


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def check_styles(styles, modules):
    given = {style.resolve() for style in styles}
    for folder in sorted({module.resolve().parent for module in modules}):
        for style in sorted(folder.glob("*.css")):
            if style not in given:
                sys.exit(f"make_page.py: {style.name} stands beside the modules, and is none of "
                         "--styles; the page would be without it")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("engine_js", type=pathlib.Path)
    parser.add_argument("engine_wasm", type=pathlib.Path)
    parser.add_argument("worker_js", type=pathlib.Path)
    parser.add_argument("--styles", nargs="+", required=True, type=pathlib.Path)
    parser.add_argument("--modules", nargs="+", required=True, type=pathlib.Path)
    args = parser.parse_args()
    check_styles(args.styles, args.modules)
    script = embed_page.joined(args.modules)
    style = "".join(file.read_text(encoding="utf-8") for file in args.styles)
    for text in (script, style):
        for mark in ("</script", "</style", "<!--", "\r"):
            if mark in text.lower():
                sys.exit(f"make_page.py: \"{mark}\" would end or change the element around it")
    worker = args.engine_js.read_bytes() + b"\n" + args.worker_js.read_bytes()
    # 'wasm-unsafe-eval' lets WebAssembly be compiled, and no text be run as a script.
    policy = (f"default-src 'none'; script-src {digest(script)} 'wasm-unsafe-eval'; "
              f"style-src {digest(style)}; worker-src blob:; base-uri 'none'; form-action 'none'")
    args.output.write_text(f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Stageline playground</title>
<style>{style}</style>
</head>
<body>
<noscript><p>The playground is a script; allow it in this page.</p></noscript>
<script type="application/octet-stream" id="stageline-worker">{packed(worker)}</script>
<script type="application/octet-stream" id="stageline-engine">{packed(
        args.engine_wasm.read_bytes())}</script>
<script type="module">{script}</script>
</body>
</html>
""", encoding="utf-8")


if __name__ == "__main__":
    main()
