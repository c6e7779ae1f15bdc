package data_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
)

// TestValues plays testdata/value. A value is its text, or absent; with "quoted" the input is a literal of Go.
func TestValues(t *testing.T) {
	var of data.Value
	datadriven.Walk(t, "testdata/value", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text := expand(d.Input)
			if d.HasArg("quoted") {
				text = unquote(t, text)
			}
			lines := strings.Split(text, "\n")
			switch d.Cmd {
			case "clean":
				watched := cputest.Watch()
				got, err := data.Clean([]byte(text))
				assert.LessOrEqual(t, watched(), tooLong, "%s: %d bytes took", d.Pos, len(text))
				if fault, ok := errors.AsType[*data.SyntaxError](err); ok {
					assert.True(t, errors.Is(err, data.ErrSyntax) && got == nil, "%s", d.Pos)
					return fmt.Sprintf("at %d: %s", fault.Offset, fault.Reason)
				}
				require.NoError(t, err)
				if d.HasArg("quoted") {
					return strconv.Quote(string(got))
				}
				return shortened(string(got))
			case "merge":
				watched := cputest.Watch()
				merged := written(data.Merge(read(lines[0]), read(lines[1])))
				data.Overlay(read(lines[0]), read(lines[1]))
				data.Equal(read(lines[0]), read(lines[1]))
				assert.LessOrEqual(t, watched(), tooLong, "%s: %d bytes took", d.Pos, len(text))
				return shortened(merged)
			case "overlay":
				return written(data.Overlay(read(lines[0]), read(lines[1])))
			case "set":
				path, err := data.ParsePath(lines[0])
				require.NoError(t, err)
				target := read(lines[1])
				got, err := data.Set(target, path, read(lines[2]))
				assert.Equal(t, lines[1], written(target), "Set changed its target")
				if err != nil {
					assert.True(t, got == nil && (errors.Is(err, data.ErrPath) || errors.Is(err, data.ErrDepth)), "%s", d.Pos)
					return err.Error()
				}
				return written(got)
			case "of":
				of = read(text)
				return "ok"
			case "lookup":
				got, ok := of.Lookup(text)
				assert.Equal(t, got != nil, ok)
				return written(got)
			}
			var out strings.Builder
			for _, line := range lines {
				fmt.Fprintf(&out, "%s: %s\n", shortened(line), one(t, d, of, line))
			}
			return out.String()
		})
	})
}

func one(t *testing.T, d *datadriven.TestData, of data.Value, line string) string {
	v := read(line)
	switch d.Cmd {
	case "index":
		i, err := strconv.Atoi(line)
		require.NoError(t, err)
		got, ok := of.Index(i)
		assert.Equal(t, got != nil, ok)
		return written(got)
	case "kind":
		return v.Kind().String()
	case "depth":
		return strconv.Itoa(v.Depth())
	case "number":
		n, whole := v.Int64()
		cut, fits := v.Truncate()
		return fmt.Sprintf("%s, %s, %v", map[bool]string{true: strconv.FormatInt(n, 10), false: "none"}[whole], map[bool]string{true: strconv.FormatInt(cut, 10), false: "none"}[fits], v.Float64())
	case "text":
		assert.True(t, v.TextIs(v.Text()) == (v.Kind() == data.String) && !v.TextIs(v.Text()+"x"), "TextIs of %s", line)
		return strconv.Quote(v.Text())
	case "append":
		return strconv.Quote(string(data.AppendString([]byte("x"), unquote(t, line))))
	case "quote":
		return data.Quote(unquote(t, line))
	case "clip":
		most, err := strconv.Atoi(d.CmdArgs[0].Key)
		require.NoError(t, err)
		return data.Clip(unquote(t, line), most)
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

func read(text string) data.Value {
	if text == "absent" {
		return nil
	}
	return data.Value(text)
}

func written(v data.Value) string { return cmp.Or(string(v), "absent") }

func shortened(text string) string {
	if len(text) > 100 {
		return fmt.Sprintf("%.20s… of %d bytes", text, len(text))
	}
	return text
}

func unquote(t *testing.T, text string) string {
	got, err := strconv.Unquote(text)
	require.NoError(t, err, text)
	return got
}

var repeated = regexp.MustCompile(`⟨(.*?)⟩\{(\d+)\}`)

// expand writes out each ⟨text⟩{n}, n times the text, with # as the number of the time.
func expand(text string) string {
	return repeated.ReplaceAllStringFunc(text, func(part string) string {
		m, all := repeated.FindStringSubmatch(part), strings.Builder{}
		n, _ := strconv.Atoi(m[2])
		if !strings.Contains(m[1], "#") {
			return strings.Repeat(m[1], n)
		}
		for i := range n {
			all.WriteString(strings.ReplaceAll(m[1], "#", strconv.Itoa(i)))
		}
		return all.String()
	})
}

// TestOrderOfEveryPair: testdata/order.txt lists values in their order; those on one line are equal.
func TestOrderOfEveryPair(t *testing.T) {
	text, err := os.ReadFile("testdata/order.txt")
	require.NoError(t, err)
	rising := strings.Split(expand(strings.TrimSpace(string(text))), "\n")[1:]
	for i, line := range rising {
		for j, other := range rising {
			for a := range strings.SplitSeq(line, "  ") {
				for b := range strings.SplitSeq(other, "  ") {
					checkPair(t, read(a), read(b), cmp.Compare(i, j))
				}
			}
		}
	}
}
