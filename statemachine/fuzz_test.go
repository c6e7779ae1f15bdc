package statemachine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

func newParser(t testing.TB) *Parser {
	t.Helper()
	p, err := NewParser(ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parseChart(t testing.TB, text string) *Definition {
	t.Helper()
	parsed, err := newParser(t).Parse(Source{File: "w.yaml", Text: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Definition
}

func started(t rapid.TB, d *Definition) Result {
	t.Helper()
	r, err := d.Create(Creation{ID: "i", Caller: &Caller{ID: "u"}, Public: data.Value(`{"a":1}`), Now: time.Unix(0, 0)})
	require.NoError(t, err)
	return r
}

const allScripts = "testdata/*/*.txt"

func scripts(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.True(t, err == nil && len(files) != 0, "no scripts: %v", err)
	var out []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, part := range strings.Split(string(text), "\n\n") {
			head, body, _ := strings.Cut(part, "\n")
			if head == "define" || head == "yaml" || head == "json" {
				body, _, _ = strings.Cut(body, "----")
				out = append(out, body)
			}
		}
	}
	return out
}

// FuzzParse: any text is a definition or faults, and a definition has a chart, and can create an instance or say why not.
func FuzzParse(f *testing.F) {
	for _, text := range scripts(f, allScripts) {
		f.Add(text)
	}
	f.Add("id: w\nstateMachines: {m: {initial: [b], states: {a: {on: {x: h}}, b: {type: parallel, states: {c: {}, h: {type: history}}}}}}\n")
	p := newParser(f)
	stored := p.With(ParserOptions{Stored: true})
	f.Fuzz(func(t *testing.T, text string) {
		if parsed, err := stored.Parse(Source{File: "w.yaml", Text: []byte(text)}); err == nil {
			checkChart(t, parsed.Chart())
		}
		for _, file := range []string{"w.yaml", "w.json"} {
			parsed, err := p.Parse(Source{File: file, Text: []byte(text)})
			var faults document.Faults
			if err != nil {
				require.True(t, errors.As(err, &faults) && len(faults) != 0, "error without faults: %v", err)
				continue
			}
			r, err := parsed.Create(Creation{ID: "i", Caller: &Caller{ID: "u"}, Now: time.Unix(0, 0)})
			if err != nil {
				continue
			}
			checkWhole(t, parsed.Definition, &r.Instance)
			for name := range parsed.Declared.Exact {
				if IsReserved(name) {
					continue
				}
				next, err := parsed.Step(&r.Instance, Event{Name: name, Caller: &Caller{ID: "u"}, Now: time.Unix(1, 0)})
				if err == nil {
					checkWhole(t, parsed.Definition, &next.Instance)
				}
			}
		}
	})
}

// checkWhole holds that the active nodes are a configuration, that the stored
// form gives the same instance again, and that it says the same positions.
func checkWhole(t rapid.TB, d *Definition, in *Instance) {
	t.Helper()
	if !d.IsWhole(in.State.At.Active) {
		t.Fatalf("not a configuration: %s", d.States(in))
	}
	stored := d.AppendRecord(nil, in, Chain{1}, nil)
	record, err := ParseRecord(stored)
	require.NoError(t, err)
	again, err := d.Restore(in.ID, record)
	require.NoError(t, err)
	require.Equal(t, string(stored), string(d.AppendRecord(nil, &again, Chain{1}, nil)), "stored form")
	attached, err := ParseRecord(d.AppendRecord(nil, in, Chain{1}, []byte("beside it")))
	require.True(t, err == nil && string(attached.Attachment) == "beside it" && bytes.Equal(attached.Public, record.Public) && record.Attachment == nil,
		"with an attachment: got %+v, %v", attached, err)
}

// FuzzRecord: any bytes are a record that AppendRecord wrote, or ErrRecord.
func FuzzRecord(f *testing.F) {
	text, err := os.ReadFile("testdata/scenario/history.txt")
	require.NoError(f, err)
	_, body, _ := strings.Cut(string(text), "define\n")
	body, _, _ = strings.Cut(body, "----")
	d := parseChart(f, body)
	r := started(f, d)
	r, err = d.Step(&r.Instance, Event{Name: "pause", Caller: &Caller{ID: "u"}, Now: time.Unix(1, 0)})
	require.NoError(f, err)
	whole := d.AppendRecord(nil, &r.Instance, Chain{1, 2, 3}, nil)
	f.Add(whole)
	f.Add(d.AppendRecord(nil, &r.Instance, Chain{}, []byte("beside it")))
	for i := range whole {
		f.Add(whole[:i])
		flipped := append([]byte(nil), whole...)
		flipped[i] ^= 1
		f.Add(flipped)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		record, err := ParseRecord(b)
		if err != nil {
			require.ErrorIs(t, err, ErrRecord, "error of another kind")
			return
		}
		in, err := d.Restore("i", record)
		if err != nil {
			require.ErrorIs(t, err, ErrRecord, "error of another kind")
			return
		}
		checkWhole(t, d, &in)
	})
}

// TestEveryFlippedBitOfARecordIsNoticed is the control of FuzzRecord's promise.
func TestEveryFlippedBitOfARecordIsNoticed(t *testing.T) {
	d := parseChart(t, "id: a\n"+chartOfRights)
	r := started(t, d)
	whole := d.AppendRecord(nil, &r.Instance, Chain{}, nil)
	for i := range whole {
		for bit := range 8 {
			b := append([]byte(nil), whole...)
			b[i] ^= 1 << bit
			_, err := ParseRecord(b)
			require.ErrorIs(t, err, ErrRecord, "byte %d bit %d", i, bit)
		}
	}
}

// TestADamagedRecordWithARightChecksum changes and cuts a record at every byte and
// makes the checksum fit. Each is ErrRecord, or an instance that is whole.
func TestADamagedRecordWithARightChecksum(t *testing.T) {
	d := parseChart(t, `
id: w
stateMachines:
  m:
    initial: p
    states:
      p:
        type: parallel
        on: {pause: q}
        states:
          l: {initial: a, states: {a: {on: {go: b}}, b: {on: {go: a}}}}
          r: {initial: c, states: {c: {on: {go: e}}, e: {on: {go: c}}}}
          h: {type: history, history: deep}
      q: {on: {resume: h}}
`)
	caller := &Caller{ID: "u"}
	r := started(t, d)
	for _, event := range []EventName{"go", "pause", "resume"} {
		var err error
		r, err = d.Step(&r.Instance, Event{Name: event, Caller: caller, Now: time.Unix(1, 0)})
		require.NoError(t, err)
	}
	restored, refused := 0, 0
	try := func(body []byte) {
		record, err := ParseRecord(binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))))
		var in Instance
		if err == nil {
			in, err = d.Restore("i", record)
		}
		switch {
		case err == nil:
			restored++
			checkWhole(t, d, &in)
		case errors.Is(err, ErrRecord):
			refused++
		default:
			t.Fatalf("%q: error of another kind: %v", body, err)
		}
	}
	for _, attachment := range []string{"", "beside it"} {
		whole := d.AppendRecord(nil, &r.Instance, Chain{1, 2, 3}, []byte(attachment))
		body := whole[: len(whole)-4 : len(whole)-4]
		for i := range body {
			try(append([]byte(nil), body[:i]...))
			for _, change := range []byte{1, 2, 4, 'a' ^ 'b', 'c' ^ 'e', 'l' ^ 'r', 'p' ^ 'q', 0x80, 0xff} {
				changed := append([]byte(nil), body...)
				changed[i] ^= change
				try(changed)
			}
		}
	}
	assert.True(t, restored != 0 && refused != 0, "%d restored and %d refused: the test tested nothing", restored, refused)
}
