#!/usr/bin/env python3
"""Is the source distribution whole? sdist.py WHEEL FOLDER

Makes it of the last commit, builds a wheel of it with what this Python has installed, and holds
that against WHEEL, the one of the tree. Exit code 1 where something is missing.
"""
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(wheel, folder):
    folder = pathlib.Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    run = lambda *words, **more: subprocess.run([sys.executable, *map(str, words)], check=True, **more)
    run("-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT / "tools/python")
    (archive,) = folder.glob("stageline-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    sources = folder / archive.name.removesuffix(".tar.gz")
    about = (sources / "PKG-INFO").read_text(encoding="utf-8")
    for line in ("License-Expression: Apache-2.0", "Description-Content-Type: text/markdown",
                 "# Stageline in Python"):
        assert f"\n{line}\n" in about, f"PKG-INFO has no {line}"
    # As deep as the build folder of the tree, and with its options: ccache then has the objects.
    run("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
        f"--config-settings=build-dir={sources / 'build/python'}",
        "--config-settings=setup-args=-Dwerror=true", "--wheel-dir", folder, sources)
    (made,) = folder.glob("stageline-*.whl")
    assert made.name == pathlib.Path(wheel).name, f"{made.name} is not {pathlib.Path(wheel).name}"
    with zipfile.ZipFile(made) as one, zipfile.ZipFile(wheel) as other:
        assert sorted(one.namelist()) == sorted(other.namelist()), "the wheels have other files"
        one.extractall(folder / "installed")
    said = run("-c", "import stageline; print(stageline.version())", cwd=folder / "installed",
               stdout=subprocess.PIPE, text=True).stdout
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], check=True, cwd=ROOT,
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    assert commit in said, f"it says that it is Stageline {said.strip()}, of commit {commit}"


if __name__ == "__main__":
    main(*sys.argv[1:])
