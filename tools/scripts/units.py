"""What Meson compiles together (-Dunity=on): a unit is a file in the build folder that includes several sources."""
import pathlib
import re


def sources_of_unit(file):
    """The sources in a unit of Meson's, in order; none of any other file."""
    path = pathlib.Path(file)
    if not re.search(r"-unity\d+\.cpp$", path.name):
        return []
    return re.findall(r"^#include *<(.*)>$", path.read_text(encoding="utf-8"), re.MULTILINE)
