package docx

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf16"

	"troupe/actors/template/param"
)

const (
	compoundMagic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	// encryptedStream is the stream of a compound file that is a document with a password (MS-OFFCRYPTO 2.3.4.4).
	encryptedStream = "EncryptedPackage"
)

// It passes everything else: a zip file may have something in front (a self-extractor), so only archive/zip can tell
// whether it is one.
func refuseOthers(r io.ReaderAt, size int64) error {
	head := make([]byte, min(max(size, 0), 512))
	n, err := r.ReadAt(head, 0)
	if n < len(head) && err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	text := strings.TrimLeft(strings.TrimPrefix(string(head), "\xef\xbb\xbf"), " \t\r\n")
	switch {
	case n == 0:
		return param.NotTemplate("an empty file")
	case strings.HasPrefix(string(head), compoundMagic):
		return refuseCompound(r, size, head)
	case strings.HasPrefix(text, "{\\rtf"):
		return param.NotTemplate("an RTF file, not a document of Office Open XML")
	case strings.HasPrefix(text, "%PDF"):
		return param.NotTemplate("a PDF file, not a document of Office Open XML")
	case strings.HasPrefix(text, "<"):
		return param.NotTemplate("an XML or HTML file, not a document of Office Open XML")
	}
	return nil
}

// Both are compound files; only the encrypted one has encryptedStream.
func refuseCompound(r io.ReaderAt, size int64, head []byte) error {
	found, err := hasStream(r, size, head, encryptedStream)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case found:
		return &param.Fault{Kind: param.ErrEncrypted, Reason: "the document needs a password"}
	}
	return param.NotTemplate("a compound file (.doc, .xls), not a document of Office Open XML")
}

// hasStream looks for a stream in the directory of a compound file (MS-CFB 2.2 to 2.6). A damaged file has no such
// stream.
func hasStream(r io.ReaderAt, size int64, head []byte, stream string) (bool, error) {
	const (
		shiftAt, directoryAt, tableAt = 0x1e, 0x30, 0x4c
		tableSectors                  = 109
		lastSector                    = 0xfffffffa
		entryBytes                    = 128
	)
	if len(head) < tableAt+4*tableSectors {
		return false, nil
	}
	shift := binary.LittleEndian.Uint16(head[shiftAt:])
	if shift != 9 && shift != 12 {
		return false, nil
	}
	bytesOf := int64(1) << shift
	sector := make([]byte, bytesOf)
	next := make([]byte, 4)
	at := binary.LittleEndian.Uint32(head[directoryAt:])
	for range size/bytesOf + 1 {
		if at >= lastSector {
			return false, nil
		}
		if n, err := r.ReadAt(sector, (int64(at)+1)*bytesOf); n < len(sector) {
			return false, err
		}
		for entry := sector; len(entry) > 0; entry = entry[entryBytes:] {
			if streamName(entry) == stream {
				return true, nil
			}
		}
		perSector := uint32(bytesOf / 4)
		if at/perSector >= tableSectors {
			return false, nil
		}
		table := binary.LittleEndian.Uint32(head[tableAt+4*(at/perSector):])
		if n, err := r.ReadAt(next, (int64(table)+1)*bytesOf+4*int64(at%perSector)); n < len(next) {
			return false, err
		}
		at = binary.LittleEndian.Uint32(next)
	}
	return false, nil
}

func streamName(entry []byte) string {
	const nameBytesMax, lengthAt = 64, 0x40
	length := int(binary.LittleEndian.Uint16(entry[lengthAt:])) - 2 // without the NUL at its end
	if length < 0 || length > nameBytesMax {
		return ""
	}
	units := make([]uint16, length/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(entry[2*i:])
	}
	return string(utf16.Decode(units))
}
