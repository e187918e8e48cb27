"""Labels: `//package:name` in this repository, `@pipelink//package:name` in the library."""

import re
from dataclasses import dataclass

_LABEL = re.compile(
    r"(?:@(?P<repository>[A-Za-z0-9_.-]+))?(?://(?P<package>[A-Za-z0-9_./+-]*))?"
    r"(?::(?P<name>[A-Za-z0-9_.+-]+))?\Z"
)
LONGEST = 200  # characters of a folder or name: file systems take 255 bytes, with what is added
LIBRARY = "pipelink"  # the repository name of the components that come with the package


@dataclass(frozen=True, order=True)
class Label:
    """repository: "" = the one being built.  package: folder of the SConscript, "" = the top."""

    repository: str
    package: str
    name: str

    def __str__(self) -> str:
        at = f"@{self.repository}" if self.repository else ""
        return f"{at}//{self.package}:{self.name}"


ABI = Label(LIBRARY, "components/include", "pipelink")  # headers that every component includes


def parse_label(text: str, here: Label | None = None) -> Label | None:
    """Return `//a/b:c`, `//a/b` (= `//a/b:b`), `:c` (in the package of `here`), `@pipelink//a:b`.

    Labels without a repository belong to the repository of `here`.  None if the text is not a
    label, or one that no file could have.
    """
    match = _LABEL.match(text) if isinstance(text, str) else None
    if match is None or not text:
        return None
    repository, package, name = match["repository"], match["package"], match["name"]
    if package is None:
        if name is None or repository is not None or here is None or len(name) > LONGEST:
            return None
        return Label(here.repository, here.package, name)
    package = package.strip("/")
    name = name or package.rpartition("/")[2]
    folders = package.split("/")
    if not name or ".." in folders or max(map(len, (name, *folders))) > LONGEST:
        return None
    if repository is None:
        repository = here.repository if here else ""
    return Label(repository, package, name)
