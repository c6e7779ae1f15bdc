package operate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/audit"
)

// TestAnExportIsVerifiedAsEveryReaderReadsIt: of a line that could be read in two ways, no hash says which is meant.
func TestAnExportIsVerifiedAsEveryReaderReadsIt(t *testing.T) {
	row := audit.Row{TS: "2026-11-26T09:31:00.000Z", Actor: "<op>", Action: audit.TokenCreate, Target: "tok_1", Prev: audit.Genesis}
	row.Hash = row.Sum()
	escaped, err := json.Marshal(row)
	require.NoError(t, err)
	line := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(escaped))
	for _, of := range []struct{ export, want string }{
		{line + "\n", "1 row, head " + row.Hash + "\n"},
		{strings.Replace(line, `"actor":"<op>"`, `"actor":"mary","Actor":"<op>"`, 1), "is not as troupe audit -o jsonl writes it"},
		{strings.Replace(line, `"actor":`, `"actor":"mary","actor":`, 1), "is not as troupe audit -o jsonl writes it"},
		{strings.Replace(line, `{`, `{"note":"approved",`, 1), "is not as troupe audit -o jsonl writes it"},
		{strings.Replace(line, "<op>", "mary", 1), "the audit log is not whole"},
		{"", "-: it has no rows"},
	} {
		cmd, out := &cobra.Command{}, &strings.Builder{}
		cmd.SetIn(strings.NewReader(of.export))
		cmd.SetOut(out)
		if err := verifyExport(cmd, "-"); err != nil {
			out.WriteString(err.Error())
		}
		assert.Contains(t, out.String(), of.want, of.export)
	}
}
