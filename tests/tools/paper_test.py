"""The page on the paper, docs/paper.md: the tests, files and headings that it names are there."""
import re, unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
PAGE = (SOURCE / "docs/paper.md").read_text()


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class PaperPage(unittest.TestCase):
    def test_every_item_has_one_row(self):
        rows = [int(n) for n in re.findall(r"^\| (\d+) \|", PAGE, re.M)]
        self.assertEqual(sorted(rows), list(range(1, 63)))
        self.assertEqual(len(re.findall(r"^\| \d+ \|.*\| (?:yes|part|no) \| \S.*\|$", PAGE, re.M)), 62)

    def test_tests_are_there(self):
        there = set()
        for file in (SOURCE / "tests").rglob("*_test.cpp"):
            there |= {f"{a}.{b}" for a, b in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", file.read_text(), re.M)}
        named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", PAGE)) - {"Suite.Name"}
        self.assertGreater(len(named), 60)
        self.assertEqual(named - there, set())

    def test_files_are_there(self):
        named = set(re.findall(r"`((?:configs|docs|examples|results|tests)/[\w./]+)`", PAGE))
        self.assertGreater(len(named), 10)
        self.assertEqual([name for name in named if not (SOURCE / name).exists()], [])

    def test_golden_cases_are_there(self):
        cases = set(re.findall(r"`((?:convs5|convrnn|convlstm|convgru|frame)_[\w*]+)`", PAGE))
        self.assertGreater(len(cases), 5)
        self.assertEqual([case for case in cases if not list((SOURCE / "tests/golden").glob(case + ".npz"))], [])

    def test_links_lead_to_headings(self):
        links = re.findall(r"\]\((\w+\.md)(?:#([\w-]+))?\)", PAGE)
        self.assertGreater(len(links), 10)
        for page, place in links:
            headings = re.findall(r"^#+ (.*)$", (SOURCE / "docs" / page).read_text(), re.M)
            self.assertTrue(not place or place in map(anchor, headings), f"{page}#{place}")


if __name__ == "__main__":
    unittest.main()
