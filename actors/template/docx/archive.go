package docx

import (
	"archive/zip"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"troupe/actors/template/param"
)

const (
	// directoryBytesMax bounds what is read to find and read the directory of a zip file: 2,000 entries need less.
	directoryBytesMax = 1<<20 + 128<<10
	// The fixed parts of an entry's local header, of its record in the directory, and of the end record.
	localHeaderBytes, recordBytes, endBytes = 30, 46, 22
	ratioGraceBytes                         = 100 << 10 // the size up to which a part may have any ratio
	encryptedFlag                           = 1         // the bit of an entry's flags for encryption
)

type archive struct {
	source  *source
	limits  param.Limits
	entries map[string]*zip.File // by the folded name of the part: /word/document.xml
	left    int64                // how many bytes may still be inflated
}

func newArchive(r io.ReaderAt, size int64, limits param.Limits) (*archive, error) {
	if err := refuseOthers(r, size); err != nil {
		return nil, err
	}
	s := &source{r: r, left: directoryBytesMax}
	a := &archive{source: s, limits: limits, entries: map[string]*zip.File{}, left: limits.DocumentBytes}
	directory, err := zip.NewReader(s, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are not paths here
		return nil, a.cause(err)
	}
	if len(directory.File) > limits.Entries {
		return nil, param.TooLarge(int64(limits.Entries), "entries in a zip file")
	}
	s.left = -1
	for _, f := range directory.File {
		if err := a.add(f); err != nil {
			return nil, err
		}
	}
	if _, found := a.entries["/[content_types].xml"]; !found {
		return nil, param.NotTemplate("a zip file that is not an Office document: it has no [Content_Types].xml")
	}
	return a, a.refuseOverlaps(directory.File, size)
}

// add ignores folders and entries whose names no part can have: no relationship leads to them.
func (a *archive) add(f *zip.File) error {
	if f.Flags&encryptedFlag != 0 {
		return &param.Fault{Kind: param.ErrEncrypted, Reason: "an entry of the zip file needs a password"}
	}
	if !isPartName(f.Name) {
		return nil
	}
	name := foldName("/" + f.Name)
	if _, twice := a.entries[name]; twice {
		return param.NotTemplate("a damaged document: the part " + param.Quote(f.Name) + " is there twice")
	}
	a.entries[name] = f
	return nil
}

// With overlaps the same bytes could be inflated under many names, and the compressed sizes in the directory would
// bound nothing.
func (a *archive) refuseOverlaps(files []*zip.File, size int64) error {
	type span struct{ start, end int64 }
	spans, directory := make([]span, 0, len(files)+1), size-endBytes
	for _, f := range files {
		data, err := f.DataOffset()
		if err != nil {
			return a.cause(err)
		}
		// The name stands between header and data, so this span starts inside the entry, never before it.
		end := data + int64(f.CompressedSize64)
		if end < data {
			return param.NotTemplate("a damaged zip file: an entry without an end")
		}
		spans = append(spans, span{data - localHeaderBytes, end})
		directory -= recordBytes + int64(len(f.Name)+len(f.Extra)+len(f.Comment))
	}
	// The directory begins earlier when something follows it.
	spans = append(spans, span{directory, size})
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(spans); i++ {
		if spans[i].start < spans[i-1].end {
			return param.NotTemplate("a damaged zip file: entries overlap")
		}
	}
	return nil
}

func (a *archive) has(name string) bool {
	_, found := a.entries[foldName(name)]
	return found
}

// The reader ends with an error when the part exceeds a limit or differs from its checksum or from its size in the
// directory.
func (a *archive) open(name string) (io.Reader, error) {
	f := a.entries[foldName(name)]
	if f.Method != zip.Store && f.Method != zip.Deflate {
		return nil, param.NotTemplate("a part is compressed in a way that documents are not: method " + strconv.Itoa(int(f.Method)))
	}
	p := &part{archive: a, file: f, ratioMax: max(ratioGraceBytes, a.limits.Ratio*int64(min(f.CompressedSize64, 1<<40)))}
	// A size in the directory that is over a limit is refused at once. What is read is counted as well, because that
	// size may be wrong.
	if f.UncompressedSize64 > 1<<62 {
		return nil, param.TooLarge(a.limits.PartBytes, "bytes in one part of a document")
	}
	if err := p.check(int64(f.UncompressedSize64)); err != nil {
		return nil, err
	}
	content, err := f.Open()
	if err != nil {
		return nil, a.cause(err)
	}
	p.content = content
	return p, nil
}

type part struct {
	archive  *archive
	file     *zip.File
	content  io.ReadCloser
	ratioMax int64 // bytes
	read     int64
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.content.Read(b)
	p.read += int64(n)
	if over := p.check(p.read); over != nil {
		return 0, over
	}
	if err == io.EOF {
		p.archive.left -= p.read
		p.read = 0
		_ = p.content.Close() // Close returns the memory for the next part; Read has reported every error
		return n, err
	}
	if err != nil {
		return n, p.archive.cause(err)
	}
	return n, nil
}

func (p *part) check(size int64) error {
	l := p.archive.limits
	switch {
	case size > l.PartBytes:
		return param.TooLarge(l.PartBytes, "bytes in one part of a document")
	case size > p.archive.left:
		return param.TooLarge(l.DocumentBytes, "bytes in all parts of a document")
	case size > p.ratioMax:
		return param.TooLarge(l.Ratio, "times the compressed size in a part of a document")
	}
	return nil
}

func (a *archive) cause(err error) error {
	var fault *param.Fault
	switch {
	case a.source.err != nil:
		return a.source.err
	case errors.As(err, &fault):
		return err
	}
	if errors.Is(err, zip.ErrFormat) {
		return param.NotTemplate("no zip file, or a damaged one")
	}
	return param.NotTemplate("a damaged zip file: " + err.Error())
}

// source keeps the reader's first error, which archive/zip may hide, and charges what is read to left while left is not
// negative.
type source struct {
	r    io.ReaderAt
	left int64
	err  error
}

func (s *source) ReadAt(p []byte, at int64) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if at < 0 { // archive/zip computes offsets from numbers in the file
		return 0, zip.ErrFormat
	}
	if s.left >= 0 {
		if s.left -= int64(len(p)); s.left < 0 {
			s.err = param.TooLarge(directoryBytesMax, "bytes in the directory of a zip file")
			return 0, s.err
		}
	}
	n, err := s.r.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = err
	}
	return n, err
}

// isPartName: the entry is not a folder, and the target of a relationship can name every segment.
func isPartName(name string) bool {
	if strings.ContainsAny(name, "\\\x00") {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// foldName returns name in lower case. Names that differ only in the case of ASCII letters mean the same part.
func foldName(name string) string {
	fold := func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}
	return strings.Map(fold, name)
}

const (
	compoundMagic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	// encryptedStream is the stream of a compound file that is a document with a password (MS-OFFCRYPTO 2.3.4.4).
	encryptedStream = "EncryptedPackage"
)

// refuseOthers passes everything else: a zip file may have something in front (a self-extractor), so only archive/zip can tell
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

// Old and encrypted documents are compound files; only the encrypted one has encryptedStream.
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
