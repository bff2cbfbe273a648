#!/usr/bin/env python3
"""Finds a LibTorch for Meson: find_torch.py auto|wheel|system [PLACE]

wheel is the LibTorch inside a Python torch package: that of $VIRTUAL_ENV, else of the python3 on the
PATH. system is one installed with its headers under a prefix: Debian's libtorch-dev in /usr. auto
takes the first of these that there is. PLACE names it instead: a Python interpreter, the folder of a
torch package, or the prefix of a LibTorch.

Prints one `key<TAB>value` a line; keys that repeat are lists:
  kind          wheel or system
  version       as the package says it: 2.13.0+cpu, 1.13.1+dfsg-4
  include       header folders, without those that the compiler searches anyway
  library_dir   where the libraries lie
  library       full paths to link with, in order
  cuda          yes or no: whether CUDA's libraries are among them
  cuda_include  folders with CUDA's own headers, where some were found
  cuda_library_dir  folders with CUDA's own libraries, which LibTorch's need
  cpp_std       the oldest C++ standard that its headers take
Exit code 3, and one line that says what is missing, where none is found. torch is never imported:
that takes seconds, and fails where the package is half broken.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

API = "torch/csrc/api/include"  # the second header folder
FIND = "import importlib.util as u; s = u.find_spec('torch'); print(s and s.origin or '')"
HOW = ("`pip install torch` in the python3 on the PATH or in a virtual environment, "
       "or `apt install libtorch-dev libopenblas0-pthread`")


class NotFound(Exception):
    """Why there is no LibTorch, as a clause."""


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def package_of(python):
    """The folder of the torch package that this interpreter would import."""
    try:
        run = subprocess.run([python, "-c", FIND], cwd="/", text=True, timeout=60, check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        raise NotFound(f"{python} does not run") from None
    origin = run.stdout.strip()
    if not origin:
        raise NotFound(f"{python} has no torch package")
    return os.path.dirname(origin)


def debian_version():
    try:
        run = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libtorch-dev"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return run.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def version_of(prefix, include):
    if match := re.search(r"^__version__\s*=\s*'([^']+)'", read(f"{prefix}/version.py"), re.M):
        return match[1]
    if said := read(f"{prefix}/build-version").strip():  # in the archives of pytorch.org
        return said
    if prefix == "/usr" and (said := debian_version()):  # its header is behind its package
        return said
    for header in (f"{include}/torch/headeronly/version.h", f"{include}/{API}/torch/version.h"):
        if match := re.search(r'define TORCH_VERSION\s*\\?\s*"([^"]+)"', read(header)):
            return match[1]
    raise NotFound(f"{prefix} does not say which version of LibTorch it is")


def library_dir_of(prefix):
    found = sorted(glob.glob(f"{prefix}/lib/*/libtorch_cpu.so"))
    for path in (f"{prefix}/lib/libtorch_cpu.so", f"{prefix}/lib64/libtorch_cpu.so", *found):
        if os.path.exists(path):
            return os.path.dirname(path)
    raise NotFound(f"{prefix} has no lib/libtorch_cpu.so")


def old_abi(libraries):
    """Whether it speaks the C++ library's ABI of before g++ 5, which fmt and we do not."""
    places = (f"{libraries}/../share/cmake/Torch", f"{libraries}/cmake/Torch")
    return any("_GLIBCXX_USE_CXX11_ABI=0" in read(f"{place}/TorchConfig.cmake") for place in places)


def cuda_folders(prefix):
    """Header and library folders of the CUDA that a wheel brings beside it, or of the machine."""
    beside = sorted(glob.glob(f"{os.path.dirname(prefix)}/nvidia/*"))
    headers = [f"{one}/include" for one in beside if os.path.isdir(f"{one}/include")]
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    for place in headers + [f"{home}/include" for home in homes if home]:
        if os.path.exists(f"{place}/cuda_runtime_api.h"):
            headers += [] if place in headers else [place]
            break
    return headers, [f"{one}/lib" for one in beside if os.path.isdir(f"{one}/lib")]


def describe(prefix, kind):
    """[(key, value)] of the LibTorch under a prefix. A torch package is laid out like one."""
    include = f"{prefix}/include"
    libraries = library_dir_of(prefix)
    if not os.path.exists(f"{include}/ATen/ATen.h"):
        raise NotFound(f"{include} has no ATen/ATen.h")
    version = version_of(prefix, include)
    if old_abi(libraries):
        raise NotFound(f"LibTorch {version} in {prefix} has the C++ ABI of before g++ 5; "
                       "wheels have the new one from 2.6 on")
    names = ["torch_cpu", "torch", "c10"]
    cuda = os.path.exists(f"{libraries}/libtorch_cuda.so")
    if cuda:
        names += ["torch_cuda", "c10_cuda"]
    said = [("kind", kind), ("version", version), ("library_dir", libraries),
            ("cuda", "yes" if cuda else "no"), ("include", f"{include}/{API}")]
    # The compiler's own folder must keep its place in the order, or <stdlib.h> is not found.
    if os.path.realpath(include) != "/usr/include":
        said.append(("include", include))
    said += [("library", f"{libraries}/lib{name}.so") for name in names]
    if cuda:
        headers, folders = cuda_folders(prefix)
        said += [("cuda_include", one) for one in headers]
        said += [("cuda_library_dir", one) for one in folders]
    said.append(("cpp_std", "c++17" if int(version.split(".")[0]) >= 2 else "c++14"))
    return said


def at(place):
    """The LibTorch that the user names."""
    if os.sep in place:
        place = os.path.abspath(place)
    if os.path.isdir(place):
        place = os.path.abspath(place)
        if os.path.isdir(f"{place}/torch/include"):  # a folder of packages
            place = f"{place}/torch"
        in_python = os.path.exists(f"{place}/version.py")
        return describe(place, "wheel" if in_python else "system")
    if not os.access(place, os.X_OK) and not shutil.which(place):
        raise NotFound(f"{place} is neither a folder nor a Python interpreter")
    return describe(package_of(place), "wheel")


def wheel():
    environment = os.environ.get("VIRTUAL_ENV", "")
    python = f"{environment}/bin/python3" if environment else shutil.which("python3")
    if not python:
        raise NotFound("there is no python3 on the PATH")
    return describe(package_of(python), "wheel")


def system():
    if not os.path.exists("/usr/include/ATen/ATen.h"):
        raise NotFound("there is no libtorch-dev in /usr")
    return describe("/usr", "system")


def main(kind, place=""):
    ways = [lambda: at(place)] if place else {"wheel": [wheel], "system": [system],
                                              "auto": [wheel, system]}[kind]
    reasons = []
    for way in ways:
        try:
            found = way()
        except NotFound as why:
            reasons.append(str(why))
            continue
        if kind not in ("auto", found[0][1]):
            reasons.append(f"{place} is a LibTorch of the kind {found[0][1]}, not {kind}")
            continue
        for key, value in found:
            print(f"{key}\t{value}")
        return 0
    print("; ".join(reasons) + f"; to get one: {HOW}")
    return 3


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in ("auto", "wheel", "system"):
        sys.exit(f"usage: {sys.argv[0]} auto|wheel|system [PLACE]")
    sys.exit(main(*sys.argv[1:]))
