#!/usr/bin/env python3
"""Writes what the command and the library are built from, with versions and licences, as an SPDX 2.3 document.

usage: spdx.py VERSION DEPENDENCY=VERSION...

The bytes depend on the arguments alone (and on SOURCE_DATE_EPOCH, where it is set).
"""
import datetime
import hashlib
import json
import os
import sys

# How it is used, its licence, and where it comes from.
DEPENDENCIES = {
    "Boost": ("headers", "BSL-1.0", "https://www.boost.org"),
    "CLI11": ("headers", "BSD-3-Clause", "https://github.com/CLIUtils/CLI11"),
    "Eigen": ("headers", "MPL-2.0", "https://eigen.tuxfamily.org"),
    "fmt": ("linked", "MIT", "https://fmt.dev"),
    "JSON for Modern C++": ("headers", "MIT", "https://json.nlohmann.me"),
    "Protocol Buffers": ("linked", "BSD-3-Clause", "https://protobuf.dev"),
    "zlib": ("linked", "Zlib", "https://zlib.net"),
}


def package(name, version, licence, home):
    return {"SPDXID": "SPDXRef-" + "".join(c if c.isalnum() else "-" for c in name), "name": name,
            "versionInfo": version, "homepage": home, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": "NOASSERTION"}


def document(version, found):
    own = package("stageline", version, "Apache-2.0", "NOASSERTION")
    del own["homepage"]
    packages, relations = [own], [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"], "")]
    for name, (use, licence, home) in DEPENDENCIES.items():
        if name not in found:
            continue
        packages.append(package(name, found[name], licence, home))
        relations.append((own["SPDXID"], "DEPENDS_ON", packages[-1]["SPDXID"], use))
    digest = hashlib.sha256(json.dumps(packages).encode()).hexdigest()[:16]
    moment = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
                                             datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"stageline-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/stageline-{version}-{digest}",
        "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": [f"Tool: stageline-{version}"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other,
             **({"comment": use} if use else {})} for one, how, other, use in relations],
    }


def main(version, *words):
    found = dict(word.rsplit("=", 1) for word in words)
    unknown = sorted(set(found) - set(DEPENDENCIES))
    if unknown:
        sys.exit(f"spdx.py: no licence is known of {', '.join(unknown)}; add it to the table")
    print(json.dumps(document(version, found), indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
