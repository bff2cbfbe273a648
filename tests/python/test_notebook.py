"""Does the tour run from its first cell to its last?"""
import pathlib
import unittest

TOUR = (pathlib.Path(__file__).resolve().parents[2] / "tools" / "python" / "examples" /
        "tour.ipynb")


class Tour(unittest.TestCase):
    def test_runs(self):
        try:
            import ipykernel  # noqa: F401
            import nbclient
            import nbformat
            import pandas  # noqa: F401
        except ImportError as error:
            self.skipTest(f"a notebook cannot be run: {error}")
        notebook = nbformat.read(TOUR, as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.assertEqual(len(notebook.cells), 10)
        kinds = {kind for cell in code for output in cell.outputs
                 for kind in output.get("data", {})}
        self.assertIn("image/svg+xml", kinds)
        self.assertIn("text/html", kinds)
