"""The files that are checked, and the findings."""

import os
import subprocess

import config


class Tree:
    """The text files of a tree: all that git knows or would take, or every file without git."""

    def __init__(self, root):
        self.root = root
        self.paths = sorted(path for path in self._list()
                            if os.path.isfile(os.path.join(root, path)))
        self._texts = {}
        self.findings = []

    def _list(self):
        if os.path.exists(os.path.join(self.root, ".git")):
            output = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.root,
                                    capture_output=True, text=True, check=True).stdout
            return output.splitlines()
        return [os.path.relpath(os.path.join(folder, name), self.root)
                for folder, _, names in os.walk(self.root) for name in names]

    def text(self, path):
        """The text of a file; "" for one that is missing or not text."""
        if path not in self._texts:
            try:
                with open(os.path.join(self.root, path), encoding="utf-8") as file:
                    self._texts[path] = file.read()
            except (OSError, UnicodeDecodeError):
                self._texts[path] = ""
        return self._texts[path]

    def cpp(self, *folders):
        """The C++ files below these folders."""
        return [path for path in self.paths if path.split("/")[0] in folders
                and path.endswith((".h", ".cc", ".cu", ".cuh"))]

    def report(self, rule, path, line, message):
        if not any(entry[:2] == (rule, path) for entry in config.ALLOWED):
            self.findings.append((path, line, rule, message))
