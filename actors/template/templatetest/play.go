package templatetest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/actors/template/param"
)

// Play plays the scripts of a folder. Each line below a command is a text, quoted as Go does where it must be; what read says of it
// stands under the line of dashes, with the text where there are several.
func Play(t *testing.T, dir string, read func(t *testing.T, command, text string) string) {
	t.Helper()
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			lines, out := strings.Split(cmd.Input, "\n"), ""
			for _, line := range lines {
				text := line
				if strings.HasPrefix(line, `"`) {
					var err error
					text, err = strconv.Unquote(line)
					require.NoError(t, err, line)
				}
				if len(lines) > 1 {
					out += line + ": "
				}
				out += read(t, cmd.Cmd, text) + "\n"
			}
			return out
		})
	})
}

// Told has one parameter a line, as [Short] has them, or why there are none.
func Told(t *testing.T, got []param.Param, err error) string {
	if err != nil {
		require.Nil(t, got, "parameters in spite of %v", err)
		return err.Error()
	}
	if require.NotNil(t, got); len(got) == 0 {
		return "nothing"
	}
	out := make([]string, len(got))
	for i, short := range Short(got) {
		out[i] = strconv.Quote(short)
	}
	return strings.Join(out, " ")
}
