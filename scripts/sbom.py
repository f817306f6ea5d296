#!/usr/bin/env python3
"""Bill of materials of a wheel, bundle or other folder with programs: SPDX 2.3 as JSON.

  sbom.py FOLDER --output sbom.spdx.json [--licenses FOLDER]   describes the folder; copies licences of libraries in it
          [--compiled-in PACKAGE]...                           names more of Debian's packages whose code is in the programs
  sbom.py FOLDER --check sbom.spdx.json                        compares the files and the libraries that they need with the document

Libraries in the folder must be those of Debian's packages, or of NVIDIA's toolkit; rows below give their licences.
Exit status: 0 done; 1 the document is not that of the folder; 2 the folder has a library without a row, or cannot be read."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: Licences of the Debian packages whose libraries may be in a folder, with SPDX's names.
SHARED = {
    "libc6": "LGPL-2.1-or-later", "libfmt9": "MIT", "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgloo0": "BSD-3-Clause", "libhiredis0.14": "BSD-3-Clause", "libibverbs1": "GPL-2.0-only OR Linux-OpenIB",
    "libnl-3-200": "LGPL-2.1-only", "libnl-route-3-200": "LGPL-2.1-only", "libspdlog1.10": "MIT", "libssl3": "Apache-2.0",
    "libstdc++6": "GPL-3.0-or-later WITH GCC-exception-3.1", "libtinyxml2-9": "Zlib", "libyaml-cpp0.7": "MIT", "zlib1g": "Zlib"}
#: The same for packages that are compiled into the programs.
COMPILED_IN = {"libcli11-dev": "BSD-3-Clause", "libeigen3-dev": "MPL-2.0", "nlohmann-json3-dev": "MIT"}
#: Licences of packages whose code some builds compile in.
MAY_BE_COMPILED_IN = {"libssl-dev": "Apache-2.0"}
#: NVIDIA's redistributable libraries, by the beginning of the name.
NVIDIA = re.compile(r"libcudart\.so")
#: Libraries that belong to the machine: Linux's C and C++ libraries, and the driver.
OF_THE_MACHINE = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|pthread|rt|resolv|gcc_s|stdc\+\+|cuda))\.so\.\d+$")
OWN = re.compile(r"libhipress\w*\.so[\d.]*$")


class Refused(Exception):
    """Error: the folder cannot be described; the exit status is 2."""


def elf_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Programs and libraries, without links, in the order of their names."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    found.append(path)
    return found


def dynamic(path: pathlib.Path) -> tuple[str, list[str]]:
    """Name under which a file is loaded, and the names that it needs."""
    said = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    name = re.search(r"\(SONAME\).*\[(.*)\]", said)
    return (name[1] if name else path.name), re.findall(r"\(NEEDED\).*\[(.*)\]", said)


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def origin(library: pathlib.Path) -> pathlib.Path:
    """File of this machine from which a library was copied. Raises Refused if no file has these bytes."""
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    name = dynamic(library)[0]
    places = [*re.findall(rf"^\s*{re.escape(name)} .*=> (.*)$", said, re.MULTILINE), f"/lib64/{name}",
              f"/usr/local/cuda/lib64/{name}", f"/lib/x86_64-linux-gnu/{name}"]
    for place in map(pathlib.Path, places):
        if place.is_file() and place.read_bytes() == library.read_bytes():
            return place.resolve()
    raise Refused(f"{library}: no library of this machine has these bytes, so its licence is unknown")


def debian_package(path: pathlib.Path) -> str:
    """Debian package of a file of this machine; empty without one. Debian may list a file of /usr/lib under /lib."""
    for one in (path, pathlib.Path(str(path).removeprefix("/usr"))):
        done = subprocess.run(["dpkg-query", "--search", one], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    return ""


def version_of(package: str) -> str:
    done = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout or "NOASSERTION"


def identifier(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.]", "-", name)


def package(name: str, version: str, licence: str, purl: str = "") -> dict:
    """Package of an SPDX document; `purl` identifies it in databases of vulnerabilities."""
    made = {"name": name, "SPDXID": identifier("Package", name), "versionInfo": version, "licenseDeclared": licence,
            "licenseConcluded": licence, "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False}
    if purl:
        made["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return made


def debian(name: str, licence: str) -> dict:
    version = version_of(name)
    return package(name, version, licence, f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch=amd64")


def package_of(library: pathlib.Path) -> dict:
    """Package of a library in the folder that is not this project's. Raises Refused if no row has its licence."""
    if NVIDIA.match(library.name):
        return package("cuda-cudart", dynamic(library)[0].rpartition(".so.")[2], "LicenseRef-NVIDIA-CUDA-EULA")
    name = debian_package(origin(library))
    if name not in SHARED:
        raise Refused(f"{library}: no row of scripts/sbom.py has the licence of {name or 'a library of no Debian package'}")
    return debian(name, SHARED[name])


def describe(folder: pathlib.Path, more: list[str]) -> dict:
    """SPDX document of a folder, with `more` packages that are compiled in."""
    compiled_in = COMPILED_IN | {name: MAY_BE_COMPILED_IN[name] for name in more}
    release = re.search(r"project\(hipress VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    main = package("hipress", release, "Apache-2.0")
    packages = {main["name"]: main}
    files, relations = [], []
    for path in elf_files(folder):
        name = str(path.relative_to(folder))
        file = {"fileName": f"./{name}", "SPDXID": identifier("File", name),
                "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(path)}], "copyrightText": "NOASSERTION"}
        files.append(file)
        of = main
        if ".so" in path.name and not OWN.match(path.name):
            of = package_of(path)
            packages[of["name"]] = of
        relations.append((of["SPDXID"], "CONTAINS", file["SPDXID"]))
    for name, licence in compiled_in.items():
        packages[name] = debian(name, licence)
        relations.append((main["SPDXID"], "STATIC_LINK", packages[name]["SPDXID"]))
    for of in packages.values():
        if of is not main and of["name"] not in compiled_in:
            relations.append((main["SPDXID"], "DYNAMIC_LINK", of["SPDXID"]))
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    whole = hashlib.sha256(json.dumps([files, list(packages)]).encode()).hexdigest()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"hipress-{release}",
            "documentNamespace": f"https://spdx.org/spdxdocs/hipress-{release}-{whole[:32]}",
            "creationInfo": {"created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": ["Tool: hipress scripts/sbom.py"]},
            "hasExtractedLicensingInfos": [{"licenseId": "LicenseRef-NVIDIA-CUDA-EULA", "extractedText":
                                            "https://docs.nvidia.com/cuda/eula"}] if "cuda-cudart" in packages else [],
            "documentDescribes": [main["SPDXID"]], "packages": list(packages.values()), "files": files,
            "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                              for one, kind, other in relations]}


def copy_licences(document: dict, folder: pathlib.Path) -> None:
    """Copies the licence of each Debian package in a document, and the licence texts to which it only refers."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(one["name"] for one in document["packages"]):
        source = pathlib.Path(f"/usr/share/doc/{name}/copyright")
        if not source.is_file():
            continue
        shutil.copyfile(source, folder / f"{name}.txt")
        for common in set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", source.read_text(errors="replace"))):
            if (text := pathlib.Path("/usr/share/common-licenses", common)).is_file():
                shutil.copyfile(text, folder / f"{common}.txt")


def differences(folder: pathlib.Path, document: dict) -> list[str]:
    """Sentences about files and libraries that only the folder or only the document has."""
    listed = {file["fileName"][2:]: file["checksums"][0]["checksumValue"] for file in document["files"]}
    paths = {str(path.relative_to(folder)): path for path in elf_files(folder)}
    found = [f"{name} is in the folder and not in the document" for name in paths.keys() - listed.keys()]
    found += [f"{name} is in the document and not in the folder" for name in listed.keys() - paths.keys()]
    found += [f"{name} has other bytes than the document says" for name in paths.keys() & listed.keys()
              if sha256(paths[name]) != listed[name]]
    looked = {name: dynamic(path) for name, path in paths.items()}
    there = {name for name, _ in looked.values()} | {path.name for path in paths.values()}
    found += [f"{name} needs {one}, which is neither in the folder nor part of every Linux" for name, (_, needed) in looked.items()
              for one in needed if one not in there and not OF_THE_MACHINE.match(one)]
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--output", type=pathlib.Path, help="file to write")
    what.add_argument("--check", type=pathlib.Path, help="document to compare with")
    parser.add_argument("--licenses", type=pathlib.Path, help="folder for licences")
    parser.add_argument("--compiled-in", action="append", default=[], choices=MAY_BE_COMPILED_IN, help="package compiled in too")
    options = parser.parse_args()
    try:
        if not elf_files(options.folder):
            raise Refused(f"{options.folder} has no programs: name a folder that a wheel or bundle was unpacked in")
        if options.check:
            found = differences(options.folder, json.loads(options.check.read_text()))
            for sentence in found:
                print(f"sbom: {sentence}", file=sys.stderr)
            return 1 if found else 0
        document = describe(options.folder, options.compiled_in)
        if options.licenses:
            copy_licences(document, options.licenses)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(document, indent=1) + "\n")
        return 0
    except (Refused, OSError, ValueError, KeyError) as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
