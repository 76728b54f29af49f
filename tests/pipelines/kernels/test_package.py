"""Files that make a package: paths, limits, import roots, entries, and what a hostile zip may try."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.kernels import archive
from pipelines.kernels.archive import read_archive
from pipelines.kernels.library import LibraryError, find_library_file, library_revision
from pipelines.kernels.package import (
    MAX_FILE_BYTES,
    MAX_PACKAGE_FILES,
    PackageError,
    check_package,
    entry_candidates,
    import_root,
    module_name,
)
from pipelines.kernels.package_kernels import discover_package

KERNEL = "import triton\n\n\n@triton.jit\ndef k(x_ptr):\n    pass\n"


@pytest.mark.parametrize(
    "path",
    [
        "../up.py", "/abs.py", "a/../b.py", "a//b.py", ".hidden.py", "a/.b/c.py", "a.b/c.py", "note.txt", "a\\b.py",
        "", ".py", "a/b", "stdout/x.py", "a\n.py", "x.py\n", "/".join("abcdefghij") + "/x.py", "ü.py",
    ],
)  # fmt: skip
def test_paths_that_lead_anywhere_else_are_refused(path: str):
    with pytest.raises(PackageError):
        check_package({path: ""})


@pytest.mark.parametrize("path", ["a.py", "pkg/__init__.py", "pkg-1/ops/norm.v2.py", "0/_/x.py"])
def test_plain_paths_are_taken(path: str):
    check_package({path: ""})


def test_a_package_is_bounded():
    with pytest.raises(PackageError, match="at most 256"):
        check_package({f"f{number}.py": "" for number in range(MAX_PACKAGE_FILES + 1)})
    with pytest.raises(PackageError, match=r"a\.py has more than 1 MB"):
        check_package({"a.py": "ü" * (MAX_FILE_BYTES // 2 + 1)})
    with pytest.raises(PackageError, match="4 MB of text together"):
        check_package({f"f{number}.py": "x" * MAX_FILE_BYTES for number in range(5)})


@pytest.mark.parametrize(
    ("path", "others", "root"),
    [
        ("a.py", [], ""),
        ("pkg/ops/norm.py", [], ""),
        ("pkg/ops/norm.py", ["pkg/__init__.py"], ""),
        ("src/pkg/ops/norm.py", ["src/pkg/__init__.py"], "src"),
        ("src/pkg/ops/norm.py", ["src/pkg/ops/__init__.py"], "src/pkg"),
        ("src/pkg/norm.py", ["src/other/__init__.py"], ""),
        ("pkg/norm.py", ["__init__.py", "pkg/__init__.py"], ""),
    ],
)
def test_a_file_is_imported_from_where_its_outermost_package_lies(path: str, others: list[str], root: str):
    assert import_root(path, [path, *others]) == root


def test_modules_are_named_by_their_path():
    assert module_name("pkg/ops/norm.py") == "pkg.ops.norm"
    assert module_name("pkg/__init__.py") == "pkg"
    assert module_name("kernel.py") == "kernel"


def test_files_with_launch_code_come_first():
    files = {
        "a/kernels.py": KERNEL,
        "b/launches.py": KERNEL + "\nk[(1,)](x)\n",
        "c/util.py": "import math\n",
        "d/run.py": 'from a.kernels import k\n\nif __name__ == "__main__":\n    k[(1,)](x)\n',
    }
    assert entry_candidates(files) == ["d/run.py", "b/launches.py", "a/kernels.py"]


def test_a_file_that_launches_anothers_kernel_comes_before_those_that_define_some():
    files = {"a.py": KERNEL, "run.py": "from a import k\n\nk[(1,)](None)\n", "table.py": "TABLE[0](1)\n"}
    assert entry_candidates(files) == ["run.py", "a.py"]


def test_whom_a_file_without_kernels_launches_is_launched():
    files = {"a.py": KERNEL, "run.py": "from a import k\n\nk[(1,)](None)\n"}
    assert [(k.name, k.launched, k.helper) for k in discover_package(files, "run.py").kernels] == [("k", True, False)]
    assert [(k.name, k.launched, k.helper) for k in discover_package(files, "a.py").kernels] == [("k", True, False)]


def zipped(members: dict[str, bytes | str], **more: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = more.get("method", zipfile.ZIP_DEFLATED)
            info.external_attr = more.get("mode", 0o100644) << 16
            made.writestr(info, data)
    return out.getvalue()


def test_a_zip_gives_its_python_files_and_names_the_rest():
    data = zipped({"pkg/a.py": KERNEL, "pkg/data.json": "{}", "pkg/.cache/b.py": "", "README.md": "", "pkg/c/d.py": ""})
    found = read_archive(data)
    assert found.files == {"pkg/a.py": KERNEL, "pkg/c/d.py": ""}
    assert found.skipped == ["pkg/data.json", "pkg/.cache/b.py", "README.md"]


def test_a_repositorys_folder_around_everything_is_left_out():
    assert list(read_archive(zipped({"repo-1.2/pkg/a.py": "", "repo-1.2/b.py": ""})).files) == ["pkg/a.py", "b.py"]
    assert list(read_archive(zipped({"pkg/a.py": "", "pkg/b.py": ""})).files) == ["pkg/a.py", "pkg/b.py"]


@pytest.mark.parametrize("name", ["/etc/x.py", "../x.py", "a/../../x.py", "..\\x.py", "C:/x.py", "a\\b.txt"])
def test_a_zip_that_leads_out_of_itself_is_refused(name: str):
    with pytest.raises(PackageError, match="leads out"):
        read_archive(zipped({"a.py": "", name: ""}))


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o010644, 0o140777])
def test_links_and_devices_are_refused(mode: int):
    with pytest.raises(PackageError, match="link or a device"):
        read_archive(zipped({"a.py": "/etc/passwd"}, mode=mode))


def test_a_bomb_is_refused_before_it_is_read():
    with pytest.raises(PackageError, match="grows more than"):
        read_archive(zipped({"a.py": b"#" * (1 << 20)}))
    with pytest.raises(PackageError, match="more than 1 MB"):
        read_archive(zipped({"a.py": b"#" * (64 << 20)}))
    with pytest.raises(PackageError, match="larger than 16 MB"):
        read_archive(b"PK" + bytes(archive.MAX_ARCHIVE_BYTES))


def test_a_zip_that_lies_about_a_size_is_refused():
    data = zipped({"a.py": b"x = 1\n" * 9000})
    at = data.index(archive._CENTRAL) + 24
    assert struct.unpack_from("<I", data, at)[0] == 54_000
    for size in (10, 60_000):
        with pytest.raises(PackageError):
            read_archive(data[:at] + struct.pack("<I", size) + data[at + 4 :])


def test_many_members_many_files_and_much_text_are_refused():
    with pytest.raises(PackageError, match="more than 10000 members"):
        read_archive(archive._CENTRAL * (archive.MAX_MEMBERS + 1))
    with pytest.raises(PackageError, match="more than 256 Python files"):
        read_archive(zipped({f"f{number}.py": "" for number in range(MAX_PACKAGE_FILES + 1)}))
    with pytest.raises(PackageError, match="more than 4 MB of Python"):
        read_archive(zipped({f"f{n}.py": "x" * (MAX_FILE_BYTES - 1) for n in range(5)}, method=zipfile.ZIP_STORED))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (zipped({"a.py": b"\xff\xfe"}), "not UTF-8"),
        (zipped({"notes.txt": ""}), "no Python file"),
        (zipped({"a.py": "x = 1\n" * 99}, method=zipfile.ZIP_BZIP2), "not read here"),
        (b"not a zip", "no sound zip"),
        (b"", "no sound zip"),
        (zipped({"a.py": KERNEL})[:-30], "no sound zip"),
    ],
)
def test_what_cannot_be_read_is_told(data: bytes, words: str):
    with pytest.raises(PackageError, match=words):
        read_archive(data)


def test_an_encrypted_member_is_refused():
    data = bytearray(zipped({"a.py": "x = 1\n"}))
    data[data.index(archive._CENTRAL) + 8] |= 1
    with pytest.raises(PackageError, match="encrypted"):
        read_archive(bytes(data))


def test_a_member_that_is_there_twice_is_refused():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("a.py", "x = 1\n")
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("a.py", "x = 2\n")
    with pytest.raises(PackageError, match="twice"):
        read_archive(out.getvalue())


def test_a_member_without_a_name_is_refused():
    data = bytearray(zipped({"a.py": KERNEL}))
    at = data.index(b"PK\x01\x02")
    data[at + 28 : at + 34] = struct.pack("<HHH", 0, 0, len("a.py"))  # what was the name becomes a comment
    with pytest.raises(PackageError, match="without a name"):
        read_archive(bytes(data))


@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_damaged_zips_are_read_or_refused_in_words(at: int, damage: bytes):
    data = bytearray(zipped({"pkg/a.py": KERNEL, "pkg/b.py": "import a\n" * 40}))
    data[at : at + len(damage)] = damage
    with contextlib.suppress(PackageError):
        check_package(read_archive(bytes(data)).files)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site-packages"
    (root / "lib" / "ops").mkdir(parents=True)
    (root / "lib" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (root / "lib" / "ops" / "norm.py").write_text(KERNEL)
    (root / "lib" / "fast.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    (root / "lib" / "big.py").write_text("#" * (MAX_FILE_BYTES + 1))
    (root / "lib" / "latin.py").write_bytes(b"# \xe9\n")
    (tmp_path / "secret.py").write_text("TOKEN = 1\n")
    (root / "lib" / "leak.py").symlink_to(tmp_path / "secret.py")
    return root


def test_an_installed_module_is_found_without_running_anything(site: Path):
    found = find_library_file("lib.ops.norm", [site])
    assert (found.path, found.text) == ("lib/ops/norm.py", KERNEL)
    assert find_library_file("lib", [site]).path == "lib/__init__.py"


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("lib.fast", "compiled code"),
        ("lib.ops", "folder without code"),
        ("lib.none", "has no module lib.none"),
        ("other.x", "no library other is installed"),
        ("lib.big", "more than 1 MB"),
        ("lib.latin", "not UTF-8"),
        ("lib.leak", "outside the installed packages"),
        ("..secret", "no module's name"),
        ("lib/../../secret", "no module's name"),
        ("lib.ops.norm\n", "no module's name"),
        ("l\u0456b", "no module's name"),
        ("a." * 300 + "b", "no module's name"),
    ],
)
def test_what_is_no_installed_source_is_told(site: Path, module: str, words: str):
    with pytest.raises(LibraryError, match=words):
        find_library_file(module, [site])


def test_tritons_own_modules_are_found_and_have_a_revision():
    found = find_library_file("triton.language.standard")
    assert found.path == "triton/language/standard.py"
    assert "def cdiv" in found.text
    assert library_revision("triton.language") == library_revision("triton.runtime") != library_revision("numpy")
