"""Stores a document with a password: `lock_with_uno.py SOURCE TARGET FILTER`, run by the Python that has `uno`.

Guarantees: starts a LibreOffice of its own and ends it. Does not do: anything the command line of LibreOffice can do.
"""

import subprocess
import sys
import tempfile
import time

import uno
from com.sun.star.beans import NamedValue, PropertyValue


def connect(pipe):
    context = uno.getComponentContext()
    resolver = context.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", context)
    for _ in range(120):
        try:
            return resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
        except Exception:
            time.sleep(0.5)
    raise SystemExit("LibreOffice did not answer")


def password(target):
    """Each family of formats wants it in its own form; the older one wants the key that would be made of it."""
    if target.endswith(("docx", "xlsx", "pptx")):
        return "EncryptionData", uno.Any(
            "[]com.sun.star.beans.NamedValue",
            (NamedValue("OOXPassword", "secret"), NamedValue("CryptoType", "Standard")),
        )
    if target.endswith(("doc", "xls")):
        return "EncryptionData", uno.Any(
            "[]com.sun.star.beans.NamedValue",
            (
                NamedValue("STD97EncryptionKey", uno.ByteSequence(bytes(range(16)))),
                NamedValue("STD97UniqueID", uno.ByteSequence(bytes(range(16, 32)))),
            ),
        )
    return "Password", "secret"


def main(source, target, output_filter):
    with tempfile.TemporaryDirectory() as profile:
        pipe = "corpus" + profile.rsplit("/", 1)[-1]
        office = subprocess.Popen(
            [
                "soffice",
                "--headless",
                "--norestore",
                f"-env:UserInstallation=file://{profile}",
                f"--accept=pipe,name={pipe};urp;",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            remote = connect(pipe)
            desktop = remote.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", remote)
            document = desktop.loadComponentFromURL(
                "file://" + source, "_blank", 0, (PropertyValue("Hidden", 0, True, 0),)
            )
            name, value = password(target)
            how = (PropertyValue("FilterName", 0, output_filter, 0), PropertyValue(name, 0, value, 0))
            uno.invoke(document, "storeToURL", ("file://" + target, uno.Any("[]com.sun.star.beans.PropertyValue", how)))
            document.close(True)
            desktop.terminate()
        finally:
            office.wait(timeout=60)


main(*sys.argv[1:])
