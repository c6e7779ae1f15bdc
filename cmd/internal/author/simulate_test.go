package author

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/clitest"
)

// TestSimulating is a dialogue: a step that is wrong or refused does not end it, the end of the input does.
func TestSimulating(t *testing.T) {
	file := filepath.Join(clitest.ExampleHome(t), "workflows", "leave-request.yaml")
	var out, complaints bytes.Buffer
	talk := func(args ...string) {
		out.Reset()
		complaints.Reset()
		cmd := newSimulate()
		cmd.SilenceUsage = true
		cmd.SetArgs(append([]string{file}, args...))
		cmd.SetIn(strings.NewReader(`{as: john.doe, create: {}}
{as: john.doe, sent: submit}
{as: john.doe, xyzzyx: submit}
{as: john.doe, send: approve}

{as: john.doe, send: submit, data: {days: 9}}
{advance: P3D}
{as: mary.major, send: approve}
`))
		cmd.SetOut(&out)
		cmd.SetErr(&complaints)
		require.EqualError(t, cmd.Execute(), "2 lines wrong")
	}
	talk()
	for _, want := range []string{
		"main: draft\n", "refused with 403: permission denied", "task     Leave for John Doe, 9 days (manager)\n", "sent     mail to role:manager: Leave request of John Doe\n",
		"events   john.doe: withdraw\n", "main: approved\n",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.Contains(t, complaints.String(), `input:2:18: unknown key "sent"`)
	assert.Contains(t, complaints.String(), `expect, refused, in, as, data, status, body, output, message, final, done, failed)`, "each once")
	t.Chdir(filepath.Dir(file)) // also from inside the folder
	file = filepath.Base(file)
	talk("-o", "json")
	assert.Equal(t, 5, strings.Count(out.String(), "\n"), out.String())
	assert.Equal(t, 5, strings.Count(out.String(), `{"state":{"_id":`), out.String())
}
