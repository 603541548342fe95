# SPDX-License-Identifier: Apache-2.0
"""Build the package slurmdl: wheels, source archives, editable installs (PEP 517, 660).

The build needs no network.  The extensions link to the installed libraries if pkg-config finds them.  Otherwise, or
with the setting slurmdl=bundled, the sources of this tree are compiled into them, and they need only libhdf5 and
libsodium.
"""

import base64
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "slurmdl"
# as in pyproject.toml
EXTRAS = {"notebook": ("pandas", "matplotlib", "tqdm", "optuna"), "hydra": ("hydra-core",), "import": ("pyyaml",)}
PACKAGES = (NAME, "hydra_plugins")
NOT_HERE = "slurmdl: libslurmdl is not installed (pkg-config slurmdl; PKG_CONFIG_PATH), and its sources are not here: copy the whole tree"


def root():
    """Folder of the library's sources: of the tree, or of a source archive."""
    for folder in (os.path.dirname(os.path.dirname(HERE)), HERE):
        if os.path.exists(os.path.join(folder, "runtime", "local.mk")):
            return folder
    return None


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def version():
    """The version of the source archive, of the tree, or of the installed library."""
    if os.path.exists(os.path.join(HERE, "PKG-INFO")):
        return re.search(r"^Version: (.+)$", read(HERE, "PKG-INFO"), re.M).group(1)
    if root() is None:
        installed = pkg_config("--modversion", "slurmdl")
        if not installed:
            raise SystemExit(NOT_HERE)
        return installed[0]
    return re.search(r"AC_INIT\(\[[^]]*\], \[([^]]*)\]", read(root(), "configure.ac")).group(1)


# ---- the extensions ----


def is_stable():
    """Whether one extension serves this and all later versions of Python."""
    return (
        sys.implementation.name == "cpython"
        and sys.version_info >= (3, 11)
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )


def pkg_config(*args):
    try:
        done = subprocess.run(["pkg-config", *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except (FileNotFoundError, PermissionError) as error:  # the latter also if a folder of PATH may not be entered
        raise SystemExit(f"slurmdl: pkg-config is needed to build it, and could not be run: {error.strerror}") from None
    return shlex.split(done.stdout) if done.returncode == 0 else None


# Each extension: the folder of its sources, in addition to those in ext/; its library; the parts of it to bundle.
EXTENSIONS = (
    ("_slurmdl", "run", "slurmdl", ("base", "run")),
    ("_slurmdl_comm", "comm", "slurmdl-comm", ("base", "net", "comm")),
)


def linked(library):
    """Flags to link an installed library, found again at run time; None if there is none."""
    flags = pkg_config("--cflags", "--libs", library)
    if flags is None:
        return None
    folder = " ".join(pkg_config("--variable=libdir", library))
    return flags + [f"-Wl,-rpath,{folder}", f'-DPKGLIBDIR="{folder}/slurm-dl"', "-ldl"]


def bundled(parts):
    """Sources and flags to compile parts of the library in."""
    top = root()
    if top is None:
        raise SystemExit(NOT_HERE)
    hdf5 = pkg_config("--cflags", "--libs", "hdf5-serial") or pkg_config("--cflags", "--libs", "hdf5")
    if hdf5 is None:
        raise SystemExit("slurmdl: HDF5 is needed to build it (libhdf5-dev, hdf5-devel)")
    sodium = pkg_config("--cflags", "--libs", "libsodium") if "net" in parts else []
    if sodium is None:
        raise SystemExit("slurmdl: libsodium is needed to build it (libsodium-dev, libsodium-devel)")
    lists = read(top, "runtime", "local.mk")
    sources = []
    for part in parts:
        listed = re.search(rf"^{part}_sources = (?:.*\\\n)*.*", lists, re.M).group()
        sources += [os.path.join(top, "runtime", name) for name in re.findall(r"%D%/(\S+\.c)\b", listed)]
    flags = ["-D_GNU_SOURCE", "-DH5_USE_110_API", '-DPKGLIBDIR="/usr/lib/slurm-dl"']
    return sources + flags + [f"-I{top}", f"-I{top}/runtime"] + hdf5 + sodium + ["-ldl", "-lpthread", "-lm"]


# The flags that configure also tries.  The user's flags come later and take precedence, also for _FORTIFY_SOURCE.
OPTIMISED = "#include <string.h>\n#ifndef __OPTIMIZE__\n#error\n#endif\n"
HARDENING = (
    ("-fstack-protector-strong", ""),
    ("-fstack-clash-protection", ""),
    ("-fcf-protection", ""),
    ("-mbranch-protection=standard", ""),
    ("-Wl,-z,relro", ""),
    ("-Wl,-z,now", ""),
    ("-Wl,-z,noexecstack", ""),
    ("-D_FORTIFY_SOURCE=3", OPTIMISED),
    ("-D_FORTIFY_SOURCE=2", OPTIMISED),
)


def hardening(compiler, flags):
    """The flags of HARDENING that the compiler and the linker accept."""
    found = []
    for flag, program in HARDENING:
        name = flag.split("=")[0]
        if name == "-D_FORTIFY_SOURCE" and (
            name in [f.split("=")[0] for f in found] or "-fsanitize" in " ".join(flags)
        ):
            continue
        command = [*compiler, "-O2", "-fPIC", "-shared", flag, *flags, "-Werror", "-x", "c", "-", "-o", os.devnull]
        if subprocess.run(command, input=program.encode(), stderr=subprocess.DEVNULL).returncode == 0:
            found.append(flag)
    return found


def sources_in(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".c")]


class Compiler:
    """The user's compiler.  It compiles sources that extensions share only once, and one file on each core."""

    def __init__(self, folder):
        given = shlex.split(os.environ.get("CFLAGS", ""))
        self.command = shlex.split(os.environ.get("CC") or "cc")
        self.command += ["-std=gnu11", "-O2", "-g", "-fPIC", "-fvisibility=hidden", *hardening(self.command, given), *given]
        self.folder, self.objects = folder, {}

    def run(self, *words):
        if subprocess.run(words).returncode != 0:
            raise SystemExit("slurmdl: the compiler failed: " + shlex.join(words))

    def compile(self, sources, flags):
        """Object files."""
        command = [w for w in self.command if not w.startswith("-Wl,")] + flags
        new = {}
        for source in sources:
            if (source, *flags) not in self.objects:
                new[source] = self.objects[(source, *flags)] = os.path.join(self.folder, f"{len(self.objects)}.o")
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(lambda source: self.run(*command, "-c", source, "-o", new[source]), new))
        return [self.objects[(source, *flags)] for source in sources]


def build_extension(compiler, folder, file, sources, library):
    """Compile one extension into 'folder'; returns its file name."""
    name = file + (".abi3.so" if is_stable() else sysconfig.get_config_var("EXT_SUFFIX"))
    ext = os.path.join(HERE, "ext")
    flags = [f"-I{sysconfig.get_path('include')}", f"-I{ext}"] + (["-DPy_LIMITED_API=0x030b0000"] if is_stable() else [])
    flags += [word for word in library if word[:2] in ("-I", "-D")]
    sources = sources_in(ext) + sources_in(os.path.join(ext, sources)) + [word for word in library if word.endswith(".c")]
    libraries = [word for word in library if word not in flags and word not in sources]
    compiler.run(*compiler.command, "-shared", *compiler.compile(sources, flags), *libraries, "-o", os.path.join(folder, name))
    return name


def copy_extensions(made, folder):
    """Copy the extensions that `make` in the tree built for this Python; returns their file names."""
    suffix = ".abi3.so" if is_stable() else sysconfig.get_config_var("EXT_SUFFIX")
    for name, *_ in EXTENSIONS:
        shutil.copy(os.path.join(made, name + ".so"), os.path.join(folder, name + suffix))
    return [name + suffix for name, *_ in EXTENSIONS]


def build_extensions(folder, settings=None):
    """Compile all extensions into 'folder'; returns their file names."""
    how = (settings or {}).get("slurmdl")
    if how and how.startswith("made:"):
        return copy_extensions(how[5:], folder)
    if how not in (None, "linked", "bundled"):
        raise SystemExit(f"slurmdl: slurmdl={how}: must be linked or bundled")
    flags = [None if how == "bundled" else linked(library) for _, _, library, _ in EXTENSIONS]
    if None in flags and how == "linked":
        raise SystemExit("slurmdl: pkg-config does not know slurmdl: install it, or set PKG_CONFIG_PATH")
    if None in flags:
        flags = [bundled(parts) for _, _, _, parts in EXTENSIONS]
    with tempfile.TemporaryDirectory() as objects:
        compiler = Compiler(objects)
        return [build_extension(compiler, folder, name, sources, f) for (name, sources, _, _), f in zip(EXTENSIONS, flags)]


# ---- wheels ----


def metadata():
    return (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\n"
        "Summary: Metrics, checkpoints and stop requests for training on Slurm\n"
        "License: Apache-2.0\nRequires-Python: >=3.8\nRequires-Dist: numpy\n"
        + "".join(f"Provides-Extra: {extra}\n" for extra in EXTRAS)
        + "".join(f"Requires-Dist: {name}; extra == '{extra}'\n" for extra in EXTRAS for name in EXTRAS[extra])
        + "Description-Content-Type: text/markdown\n\n" + read(HERE, "README.md")
    )


def tag():
    python = "cp%d%d" % sys.version_info[:2]
    if is_stable():
        python, abi = "cp311", "abi3"
    else:
        abi = python + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")
    return f"{python}-{abi}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


class Wheel:
    """A zip archive with a list of its files and their checksums."""

    def __init__(self, folder):
        self.name = f"{NAME}-{version()}-{tag()}.whl"
        self.info = f"{NAME}-{version()}.dist-info"
        self.zip = zipfile.ZipFile(os.path.join(folder, self.name), "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self):
        self.add(self.info + "/METADATA", metadata().encode())
        self.add(
            self.info + "/WHEEL",
            f"Wheel-Version: 1.0\nGenerator: slurmdl\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode(),
        )
        record = "".join(self.record) + f"{self.info}/RECORD,,\n"
        self.add(self.info + "/RECORD", record.encode())
        self.zip.close()
        return self.name


def files_in(top, endings):
    """Paths below a folder."""
    for folder, _, names in sorted(os.walk(top)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name), top)


def package_files():
    """Paths of the package's files, and of the plug-in that Hydra finds by the name of its folder."""
    for folder in PACKAGES:
        for name in files_in(os.path.join(HERE, folder), (".py", ".pyi", ".typed")):
            yield f"{folder}/{name}"


def read_bytes(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as tmp:
        extensions = build_extensions(tmp, config_settings)
        wheel = Wheel(wheel_directory)
        for name in package_files():
            wheel.add(name, read_bytes(HERE, name))
        for name in extensions:
            wheel.add(f"{NAME}/{name}", read_bytes(tmp, name), 0o755)
        return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build_extensions(os.path.join(HERE, NAME), config_settings)
    wheel = Wheel(wheel_directory)
    wheel.add(f"{NAME}.pth", (HERE + "\n").encode())
    return wheel.close()


# ---- source archives ----


def archived():
    """(path in the archive, path here) of each file."""
    for folder in ("ext", *PACKAGES):
        for name in files_in(os.path.join(HERE, folder), (".c", ".h", ".py", ".pyi", ".typed")):
            yield f"{folder}/{name}", os.path.join(HERE, folder, name)
    for name in ("backend.py", "pyproject.toml", "README.md"):
        yield name, os.path.join(HERE, name)
    if root() is None:
        raise SystemExit("slurmdl: an archive of sources needs those of the library: copy the whole tree")
    for name in files_in(os.path.join(root(), "runtime"), (".c", ".h", ".mk")):
        yield f"runtime/{name}", os.path.join(root(), "runtime", name)


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{version()}"
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, path in archived():
            tar.add(path, f"{base}/{name}")
        data = metadata().encode()
        entry = tarfile.TarInfo(f"{base}/PKG-INFO")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return base + ".tar.gz"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("usage: backend.py FOLDER [linked|bundled]: compile the extensions into it")
    print(*build_extensions(sys.argv[1], {"slurmdl": sys.argv[2]} if len(sys.argv) > 2 else None), sep="\n")
