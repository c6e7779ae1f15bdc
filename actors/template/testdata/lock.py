# Saves a document as .doc, and as .docx with a password, by a LibreOffice that listens:
#
#   lock.py PIPE SOURCE-URL LOCKED-URL OLD-URL
import sys
import time

import uno
from com.sun.star.beans import NamedValue, PropertyValue


def value(kind, name, of):
    v = kind()
    v.Name, v.Value = name, of
    return v


def connect(pipe):
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    for attempt in range(600):
        try:
            return resolver.resolve("uno:pipe,name=%s;urp;StarOffice.ComponentContext" % pipe)
        except Exception:  # it does not listen yet
            time.sleep(0.1)
    sys.exit("LibreOffice does not listen")


pipe, source, locked, old = sys.argv[1:]
context = connect(pipe)
desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
# NB: the document alone. Desktop.loadComponentFromURL makes its window as well, and
# an installation without windows can crash over the tool bars of one.
document = context.ServiceManager.createInstanceWithContext("com.sun.star.text.TextDocument", context)
document.load((
    value(PropertyValue, "URL", source),
    value(PropertyValue, "FilterName", "OpenDocument Text Flat XML"),
))
document.storeToURL(old, (value(PropertyValue, "FilterName", "MS Word 97"),))
password = (value(NamedValue, "CryptoType", "Standard"), value(NamedValue, "OOXPassword", "secret"))
document.storeToURL(locked, (
    value(PropertyValue, "FilterName", "MS Word 2007 XML"),
    value(PropertyValue, "EncryptionData", uno.Any("[]com.sun.star.beans.NamedValue", password)),
))
document.close(True)
try:
    desktop.terminate()
except Exception:  # it ends before it answers
    pass
