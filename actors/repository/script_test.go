package repository

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/statemachine/document"
)

// TestScript plays testdata/script: "rights" reads the file below it, "readers" says who reads the paths below it; "match"
// says whether names have extensions, "path" and "name" what is one.
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		r := &Rights{}
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			switch cmd.Cmd {
			case "rights":
				people := directory(t)
				if cmd.HasArg("alone") {
					people = nil
				}
				var err error
				r, err = ParseRights("rights.yaml", []byte(cmd.Input+"\n"), people)
				var faults document.Faults
				assert.Equal(t, err != nil, errors.As(err, &faults) && r == nil, "rights in spite of faults")
				return fmt.Sprintln(cmp.Or(err, errors.New("ok")))
			case "zero":
				r = &Rights{}
				return "ok\n"
			case "closed":
				r = Closed()
				return "ok\n"
			}
			var out strings.Builder
			for line := range strings.Lines(cmd.Input) {
				first, rest := strings.TrimSpace(line), ""
				if quoted, err := strconv.QuotedPrefix(line); err == nil {
					first, rest = unquote(t, quoted), line[len(quoted):]
				}
				switch cmd.Cmd {
				case "readers":
					fmt.Fprintf(&out, "%s: %s\n", first, readersOf(t, r, first))
				case "path":
					fmt.Fprintf(&out, "%t: %s", IsPath(first), line)
				case "name":
					fmt.Fprintf(&out, "%t: %s", IsName(first), line)
				case "match":
					quoted, err := strconv.QuotedPrefix(strings.TrimSpace(rest))
					require.NoError(t, err)
					extension, err := ParseExtension(first)
					assert.True(t, err == nil || errors.Is(err, failure.ErrInvalid), err)
					fmt.Fprintf(&out, "%v: %s", cmp.Or(err, errors.New(strconv.FormatBool(extension.Matches(unquote(t, quoted))))), line)
				default:
					t.Fatalf("unknown command %q", cmd.Cmd)
				}
			}
			return strings.TrimSuffix(out.String(), "\n") + "\n"
		})
	})
}

func unquote(t *testing.T, quoted string) string {
	text, err := strconv.Unquote(quoted)
	require.NoError(t, err)
	return text
}

func TestWhatIsTooLong(t *testing.T) {
	_, err := ParseExtension("." + strings.Repeat("a", extensionBytesMax))
	require.NoError(t, err, "the longest extension")
	_, err = ParseExtension(strings.Repeat("a", 10_000))
	assert.True(t, errors.Is(err, failure.ErrInvalid) && strings.Contains(err.Error(), "longer than"), err)
	_, err = ParseRights("rights.yaml", []byte("- {path: '"+strings.Repeat("/a", rightsFolderMax+1)+"', readers: []}\n"), nil)
	assert.ErrorContains(t, err, "is deeper than")
}
