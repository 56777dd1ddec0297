#!/usr/bin/env python3
"""Pages of `cairn report` over several indexes are XML, and Chromium shows them without a fault: nothing is wider than a
phone's screen, no other resource is requested, contrasts are sufficient. tools/look-at-page finds planted faults.

  report_layout_test.py CAIRN LOOK_AT_PAGE
"""
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SPECS = {
    "customer": ["phone=value.field('|',4):text", "nation_balance=value.field('|',3):u8,value.field('|',5):f64",
                 "balance=value.field('|',5):f64", "whole=value:bytes"],
    "profile": ["city=value.json('/address/city'):text", "none=value.json('/nothing'):u64"],
}
FAULTS = {
    "page of": '<div style="width:1400px">wide</div>',
    "contrast": '<p style="color:#ccc">pale</p>',
    "console": '<script>console.error("oh")</script>',
    "asks for": '<img src="https://example.invalid/x.png"/>',
}


def main():
    cairn, look = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        planted = []
        for fault, body in FAULTS.items():
            planted.append(directory / f"{fault.replace(' ', '-')}.html")
            planted[-1].write_text(f'<!DOCTYPE html><html><body style="background:#fff">{body}</body></html>')
        found = subprocess.run([look, *planted], capture_output=True, text=True)
        if found.returncode == 77:
            print(found.stderr)
            return 77
        for fault, page in zip(FAULTS, planted):
            if not any(line.startswith(page.name) and fault in line for line in found.stdout.splitlines()):
                print(f"did not find the fault '{fault}':", found.stdout, found.stderr)
                return 1

        def run(*arguments):
            subprocess.run([cairn, *arguments], check=True, stdout=subprocess.DEVNULL)

        database = directory / "db"
        run("demo", str(database), "--rows=20000")
        pages = []
        for family, specs in SPECS.items():
            for spec in specs:
                title = spec.split("=")[0]
                run("build", f"--db={database}", f"--cf={family}", f"--spec={spec}", f"--out={directory / title}")
                pages.append(directory / f"{title}.html")
                run("report", str(directory / title), f"--out={pages[-1]}", f"--db={database}", "--seconds=0.3")
                xml.etree.ElementTree.fromstring(pages[-1].read_text(encoding="utf-8"))
        faults = subprocess.run([look, *pages], capture_output=True, text=True)
        print(faults.stdout, faults.stderr)
        return faults.returncode


sys.exit(main())
